// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// webhook lets an agent serve the webhook, and makes the cluster call it for every pod of the test.
func (s *source) webhook(o *Options) {
	s.Helper()
	authority := testpki.New(s)
	o.CertFile, o.KeyFile = authority.Issue(s, "elect")
	var err error
	if o.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		s.Fatal(err)
	}
	all := s.api.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if err := all.Delete(s.Context(), "elect", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
	_, err = all.Create(s.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "elect"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "elect.admiralty.virtual-kubelet.io", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.ns}},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://" + o.Listener.Addr().String() + "/elect"), CABundle: authority.PEM},
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// elect creates an elected pod that requests the given number of CPUs.
func (s *source) elect(name, cpu string) {
	s.Helper()
	s.untilWebhook()
	if _, err := s.api.Client.CoreV1().Pods(s.ns).Create(s.Context(), s.pod(name, cpu), metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *source) pod(name, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationElect: ""}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(1)), Containers: []corev1.Container{{
			Name: "main", Image: "program", Args: program.Program{Stay: program.Forever}.Args(),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
}

// untilWebhook waits until the API server calls the webhook.
func (s *source) untilWebhook() {
	s.Helper()
	until(s.T, "the webhook is called", func() (bool, string) {
		got, err := s.api.Client.CoreV1().Pods(s.ns).Create(s.Context(), s.pod("dry", "1"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && got.Spec.SchedulerName == SchedulerName, fmt.Sprint(err)
	})
}

// untilRuns waits until a pod runs, and returns its node.
func (s *source) untilRuns(name string) string {
	s.Helper()
	node := ""
	until(s.T, "pod "+name+" runs", func() (bool, string) {
		pod, err := s.api.Client.CoreV1().Pods(s.ns).Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		node = pod.Spec.NodeName
		return pod.Status.Phase == corev1.PodRunning, fmt.Sprint(node, " ", pod.Status)
	})
	return node
}

// untilWaits waits until a pod that must not be bound reports the reason.
func (s *source) untilWaits(name, why string) {
	s.Helper()
	until(s.T, "pod "+name+" says why it waits", func() (bool, string) {
		pod, err := s.api.Client.CoreV1().Pods(s.ns).Get(s.Context(), name, metav1.GetOptions{})
		if err != nil || pod.Spec.NodeName != "" {
			s.Fatalf("pod %s is on %q (%v), want it to wait", name, pod.Spec.NodeName, err)
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				return strings.Contains(c.Message, why), c.Message
			}
		}
		return false, "nothing is said"
	})
}

// clear deletes all pods, and waits until the targets have none.
func (s *source) clear() {
	s.Helper()
	if err := s.api.Client.CoreV1().Pods(s.ns).DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		s.Fatal(err)
	}
	until(s.T, "no pod is left", func() (bool, string) {
		left := 0
		for _, api := range append([]*testapi.API{s.api}, s.all()...) {
			list, err := api.Client.CoreV1().Pods("").List(s.Context(), metav1.ListOptions{})
			if err != nil {
				return false, err.Error()
			}
			left += len(list.Items)
		}
		return left == 0, fmt.Sprint(left)
	})
}

func (s *source) all() (all []*testapi.API) {
	for _, api := range s.targets {
		all = append(all, api)
	}
	return all
}

// TestElected checks which target cluster is elected. The targets have two nodes with 2 CPUs each, one node with 4, and one with 3.
func TestElected(t *testing.T) {
	s := startSource(t, map[string]*testapi.API{"a": startTarget(t, "2", "2"), "b": startTarget(t, "4"), "c": startTarget(t, "3")})
	stopFirst := s.agent(s.webhook)
	for _, part := range []struct {
		name string
		run  func(*source)
	}{{"fits only in the second", fitsInOne}, {"ten pods fill by room", fillByRoom}, {"target goes away", targetGoesAway}, {"agent is killed", agentIsKilled(stopFirst)}} {
		if !t.Run(part.name, func(t *testing.T) {
			in := *s
			in.T = t
			part.run(&in)
			in.clear()
		}) {
			return
		}
	}
}

// fitsInOne has a pod that fits into the sum of the first target's nodes, but only into one node of the second
// target.
func fitsInOne(s *source) {
	s.elect("big", "3500m")
	if node := s.untilRuns("big"); node != "b" {
		s.Errorf("the pod went to %s, want b", node)
	}
	pods, err := s.targets["b"].Client.CoreV1().Pods("").List(s.Context(), metav1.ListOptions{LabelSelector: remotecluster.LabelUID})
	if err != nil || len(pods.Items) != 1 || pods.Items[0].Spec.NodeName != "worker-0" {
		s.Errorf("target b has %d pods (%v), want one on its node", len(pods.Items), err)
	}
}

// fillByRoom has as many pods as there is room for, one pod more, and two agents that could bind them.
func fillByRoom(s *source) {
	defer s.agent(nil)()
	const fit = 11
	for i := range fit {
		s.elect(fmt.Sprintf("pod-%d", i), "1")
	}
	count := map[string]int{}
	for i := range fit {
		count[s.untilRuns(fmt.Sprintf("pod-%d", i))]++
	}
	if fmt.Sprint(count) != "map[a:4 b:4 c:3]" {
		s.Errorf("the pods went to %v, want as many as fit in each", count)
	}
	s.elect("more", "1")
	s.untilWaits("more", "0 of 3 targets take the pod. ")
	if err := s.api.Client.CoreV1().Pods(s.ns).Delete(s.Context(), "pod-3", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.untilRuns("more")
}

// targetGoesAway stops the target that would be chosen from answering, while its last known state has room.
func targetGoesAway(s *source) {
	s.targets["b"].Pause(s)
	defer s.targets["b"].Resume(s)
	s.elect("next", "2500m")
	if node := s.untilRuns("next"); node != "c" {
		s.Errorf("the pod went to %s, want c", node)
	}
}

// errLost is the error of a binding whose answer the agent does not get.
var errLost = errors.New("the connection is gone")

// loses is a transport that loses bindings before the server, or their answers.
type loses struct {
	next   http.RoundTripper
	answer bool
	lost   chan struct{}
}

func (l loses) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/binding") {
		return l.next.RoundTrip(r)
	}
	if l.answer {
		response, err := l.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close()
	}
	select {
	case l.lost <- struct{}{}:
	default:
	}
	return nil, errLost
}

// agentIsKilled ends an agent after its choice, before the binding was made or before the agent knew of it.
// Another agent goes on.
func agentIsKilled(stopFirst func()) func(*source) {
	return func(s *source) {
		stopFirst()
		for _, answer := range []bool{false, true} {
			name := fmt.Sprintf("answer-%t", answer)
			access, lost := s.lossy(answer)
			kill := s.agent(func(o *Options) { s.webhook(o); o.Access = access })
			s.elect(name, "3500m")
			select {
			case <-lost:
			case <-s.Context().Done():
			}
			kill()
			stop := s.agent(s.webhook)
			s.elect("second", "3500m")
			if node := s.untilRuns(name); node != "b" {
				s.Errorf("the pod went to %s, want b", node)
			}
			s.untilWaits("second", "too little cpu")
			stop()
			s.clear()
		}
	}
}

// lossy returns an access that loses bindings.
func (s *source) lossy(answer bool) (*rest.Config, chan struct{}) {
	access, lost := rest.CopyConfig(s.access), make(chan struct{}, 1)
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return loses{next, answer, lost} })
	return access, lost
}
