// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault20DeniedStatusHurtsNobodyElse: the cluster denies the daemon's status writes in one namespace. The
// pods of other namespaces are not affected.
func TestFault20DeniedStatusHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.otherNamespace()
	w.start()
	const n = 5
	w.startMany("denied", n)
	free := other.startMany("free", n)
	denied := numbered("denied", n)

	allow := w.denyStatus()
	began := time.Now()
	var delays []time.Duration
	const rounds = 10
	for i := int32(1); i <= rounds; i++ {
		w.restarts(denied, i)
		changed := time.Now()
		other.restarts(free, i)
		other.pods.await(t, "the statuses elsewhere arrive", func(pods []*corev1.Pod) bool { return all(pods, restarted(i)) })
		delays = append(delays, time.Since(changed))
		w.sleep(500 * time.Millisecond)
	}
	for _, pod := range w.pods.list() {
		if restarted(rounds)(pod) {
			t.Errorf("the status of pod %s was written, so this test shows nothing", pod.Name)
		}
	}
	events := w.rejections()
	allow()
	allowed := time.Now()
	w.pods.await(t, "the statuses arrive again", func(pods []*corev1.Pod) bool { return all(pods, restarted(rounds)) })
	took := time.Since(allowed)
	w.within("a status elsewhere (p99)", percentile(delays, 0.99), time.Second)
	w.within("the statuses after the policy was removed", took, 30*time.Second)
	for name, count := range events {
		if count != 1 {
			t.Errorf("pod %s has %d events that say its status was rejected, want 1", name, count)
		}
	}
	if len(events) != n {
		t.Errorf("%d pods have an event that says their status was rejected, want %d: %v", len(events), n, events)
	}
	w.untouched(began)
	faultrow.Record(t, 20, "a ValidatingAdmissionPolicy denies pods/status in one of two namespaces while all pods change, 10 times",
		"statuses elsewhere p99 %v, events per pod 1, statuses %v after the policy was removed",
		percentile(delays, 0.99).Round(time.Millisecond), took.Round(time.Millisecond))
}

// otherNamespace returns the same world with a second namespace.
func (w *world) otherNamespace() *world {
	w.Helper()
	other := *w
	other.namespace = w.api.Namespace(w.T)
	q := query{client: w.api.Client.CoreV1().RESTClient(), resource: "pods", namespace: other.namespace}
	other.pods = watchAll(w.T, q, &corev1.Pod{})
	return &other
}

// denyStatus denies every write of a pod's status in the test's namespace, until allow is called.
func (w *world) denyStatus() (allow func()) {
	w.Helper()
	name := w.namespace + "-deny-status"
	client := w.api.Client.AdmissionregistrationV1()
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}},
	}}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
			Validations:      []admissionv1.Validation{{Expression: "false", Message: "no statuses here"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace},
			}},
		},
	}
	if _, err := client.ValidatingAdmissionPolicies().Create(w.Context(), policy, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := client.ValidatingAdmissionPolicyBindings().Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	remove := func() {
		ctx := context.WithoutCancel(w.Context())
		_ = client.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = client.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	w.Cleanup(remove)
	w.awaitStatusPatch("is denied", func(err error) bool { return err != nil })
	return func() {
		remove()
		w.awaitStatusPatch("is allowed again", func(err error) bool { return err == nil })
	}
}

// awaitStatusPatch repeats a write of a status until done returns true for its error, because a policy takes a
// while to be in force.
func (w *world) awaitStatusPatch(what string, done func(error) bool) {
	w.Helper()
	deadline := time.Now().Add(patience)
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for {
		_, err := w.podClient().Patch(w.Context(), "denied-0000", types.MergePatchType, []byte(`{"status":{"message":"try"}}`), dry, "status")
		if done(err) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("wait until writing a status %s: %v", what, err)
		}
		w.sleep(100 * time.Millisecond)
	}
}

// rejections counts the events about a rejected status, by pod.
func (w *world) rejections() map[string]int {
	w.Helper()
	events, err := w.api.Client.CoreV1().Events(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]int{}
	for _, e := range events.Items {
		if e.Reason == "ProviderStatusRejected" {
			out[e.InvolvedObject.Name]++
		}
	}
	return out
}
