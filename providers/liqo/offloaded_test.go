// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// mapOf makes the NamespaceMap of a tenant namespace, in the form of both clusters.
func mapOf(t *testing.T, api *testapi.API, tenant string, desired map[string]string) dynamic.ResourceInterface {
	t.Helper()
	maps := dynamic.NewForConfigOrDie(api.Config).Resource(shadowPods.Resource.GroupVersion().WithResource("namespacemaps")).Namespace(tenant)
	mapping := map[string]any{}
	for home, remote := range desired {
		mapping[home] = remote
	}
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"desiredMapping": mapping}}}
	m.SetAPIVersion(group + "/" + version)
	m.SetKind("NamespaceMap")
	m.SetName("foreign")
	m.SetLabels(map[string]string{labelRemote: "foreign", "liqo.io/originID": "mapped", "liqo.io/replicated": "true"})
	if _, err := maps.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		_ = maps.Delete(ctx, "foreign", metav1.DeleteOptions{}) // the test may have removed it
	})
	return maps
}

// accept writes the status of a namespace that Liqo's controller would write. The real controller writes it
// itself.
func accept(t *testing.T, w *worker, maps dynamic.ResourceInterface, home, remote, phase string) {
	t.Helper()
	if w.shadows.real {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"currentMapping": map[string]any{home: map[string]any{"remoteNamespace": remote, "phase": phase}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(t.Context(), "foreign", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// TestNamespaceMap has a NamespaceMap in the home cluster with the remote namespace of a namespace, which comes
// and goes.
func TestNamespaceMap(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "mapped", "vk-0")
	remote := u.config.Namespaces["default"]
	tenant := w.API.Namespace(t)
	if w.shadows.real {
		remote += "-mapped" // Liqo makes this namespace
	}
	u.config.Namespaces, u.config.TenantNamespace = nil, tenant
	u.homeAccess = w.API.Config
	p, _ := u.start()
	pod := u.Pod("default", "web", stays())
	refused := func(want string) {
		t.Helper()
		u.Until("CreatePod says "+want, func() (bool, string) {
			err := p.CreatePod(t.Context(), pod.DeepCopy())
			if err == nil || errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err) {
				t.Fatalf("CreatePod in a namespace that is not offloaded: got %v, want an error that passes", err)
			}
			return strings.Contains(err.Error(), reasonBackOff) && strings.Contains(err.Error(), want), err.Error()
		})
	}
	refused("is it peered?")
	if err := p.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err) {
		t.Errorf("DeletePod of a pod that is nowhere: got %v, want the kind not-found", err)
	}
	maps := mapOf(t, w.API, tenant, map[string]string{"default": remote})
	if !w.shadows.real {
		refused("liqoctl offload namespace default")
		accept(t, w, maps, "default", remote, "CreationLoopBackOff")
		refused("is CreationLoopBackOff")
		if err := p.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err) {
			t.Errorf("DeletePod of a pod that was never made, in a namespace that is not accepted: got %v, want the kind not-found", err)
		}
	}
	accept(t, w, maps, "default", remote, phaseAccepted)
	u.config.Namespaces = map[string]string{"default": remote} // for the helpers of this test
	u.Until("the pod is made", func() (bool, string) {
		err := p.CreatePod(t.Context(), pod.DeepCopy())
		return err == nil, errText(err)
	})
	u.UntilRuns(p, pod)
	if got := u.remote(pod); got.Labels[labelOrigin] != "mapped" || got.Labels[labelDestination] != "foreign" || got.Labels[managedBy] != shadowPod {
		t.Errorf("the remote pod has the labels %v, want those of Liqo", got.Labels)
	}
	if w.shadows.real { // the real controller would remove the namespace
		u.Delete(p, pod)
		u.UntilGone(p, pod)
		return
	}
	if err := maps.Delete(t.Context(), "foreign", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next := u.Pod("default", "next", stays())
	u.Until("another pod is refused", func() (bool, string) {
		err := p.CreatePod(t.Context(), next.DeepCopy())
		return err != nil && strings.Contains(err.Error(), reasonBackOff), errText(err)
	})
	u.UntilRuns(p, pod) // where it is
	u.Delete(p, pod)
	u.UntilGone(p, pod)
}

// TestUnknownNamespaceMapIsSaid has an access to the home cluster without the right to read the NamespaceMap.
func TestUnknownNamespaceMapIsSaid(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "unmapped", "vk-0")
	u.config.Namespaces, u.config.TenantNamespace = nil, w.API.Namespace(t)
	u.homeAccess = w.API.As("nobody")
	p, _ := u.start()
	u.Until("Ping says what is missing", func() (bool, string) {
		err := p.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "cannot list resource") && strings.Contains(err.Error(), "home cluster"), errText(err)
	})
	if err := p.Examine(t.Context()); err == nil || !strings.Contains(err.Error(), "read the NamespaceMap in namespace "+u.config.TenantNamespace) {
		t.Errorf("doctor without the right to the NamespaceMap says %v", err)
	}
	u.homeAccess = w.API.Config
	other, _ := u.start()
	if err := other.Examine(t.Context()); err == nil || !strings.Contains(err.Error(), "has no NamespaceMap of the cluster foreign: is it peered?") {
		t.Errorf("doctor without a NamespaceMap says %v", err)
	}
	mapOf(t, w.API, u.config.TenantNamespace, nil)
	if err := other.Examine(t.Context()); err != nil {
		t.Errorf("doctor with a NamespaceMap says %v", err)
	}
	if err := p.DeletePod(t.Context(), u.Pod("default", "web", stays())); err == nil || errdefs.IsNotFound(err) {
		t.Errorf("DeletePod while nobody knows where the pod is: got %v, want an error that says nothing of the pod", err)
	}
}

// TestRefusalIsSaid lets Liqo's webhook refuse a ShadowPod, as for a quota.
func TestRefusalIsSaid(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "refused", "vk-0")
	name := w.API.NodeName(t)
	fail, forbidden := admissionv1.Fail, metav1.StatusReasonForbidden
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{"shadowpods"}}}}}},
		Validations: []admissionv1.Validation{{Expression: `!object.metadata.name.startsWith("large")`, Message: "peering cpu quota usage exceeded", Reason: &forbidden}},
	}}
	if _, err := w.API.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	if _, err := w.API.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := w.API.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	p, _ := u.start()
	pod := u.Pod("default", "large", stays())
	u.Until("the pod is refused", func() (bool, string) {
		err := p.CreatePod(t.Context(), pod.DeepCopy())
		if err == nil { // the policy takes effect a moment later
			u.Delete(p, pod)
			return false, "it was made"
		}
		return strings.HasPrefix(err.Error(), reasonBackOff+": ") && strings.Contains(err.Error(), "quota usage exceeded"), err.Error()
	})
	u.UntilGone(p, pod)
}

func TestNodeIsLiqos(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "node", "vk-0")
	p, _ := u.start()
	n := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: providerTaint, Value: "liqo", Effect: corev1.TaintEffectNoSchedule}}}}
	p.ConfigureNode(t.Context(), n)
	if n.Labels["liqo.io/type"] != "virtual-node" || n.Labels["liqo.io/remote-cluster-id"] != "foreign" {
		t.Errorf("the node has the labels %v, want those of Liqo", n.Labels)
	}
	if want := (corev1.Taint{Key: "virtual-node.liqo.io/not-allowed", Value: "true", Effect: corev1.TaintEffectNoExecute}); len(n.Spec.Taints) != 1 || n.Spec.Taints[0] != want {
		t.Errorf("the node has the taints %v, want Liqo's for the default one", n.Spec.Taints)
	}
	for _, taints := range [][]corev1.Taint{nil, {{Key: "own"}}} {
		n := &corev1.Node{Spec: corev1.NodeSpec{Taints: taints}}
		if p.ConfigureNode(t.Context(), n); len(n.Spec.Taints) != len(taints) || len(taints) > 0 && n.Spec.Taints[0].Key != "own" {
			t.Errorf("the node has the taints %v, want %v, as it was asked for", n.Spec.Taints, taints)
		}
	}
}

// TestProviderIsMadeOfItsConfiguration makes the provider from its configuration, as the program does.
func TestProviderIsMadeOfItsConfiguration(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	t.Setenv("VKUBELET_LIQO_KUBECONFIG", w.API.KubeconfigPath)
	t.Setenv("VKUBELET_LIQO_HOME_KUBECONFIG", w.API.KubeconfigPath)
	t.Setenv("VKUBELET_LIQO_CLUSTER_NAME", "home")
	t.Setenv("VKUBELET_LIQO_FOREIGN_CLUSTER_ID", "foreign")
	t.Setenv("VKUBELET_LIQO_TENANT_NAMESPACE", "liqo-tenant-foreign")
	in := cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{}}}
	if _, err := Provider().New(t.Context(), in); err != nil {
		t.Error(err)
	}
	t.Setenv("VKUBELET_LIQO_HOME_KUBECONFIG", "")
	if _, err := Provider().New(t.Context(), in); err == nil || !strings.Contains(err.Error(), "homeKubeconfig") {
		t.Errorf("without access to the home cluster: got %v, want an error about homeKubeconfig", err)
	}
}
