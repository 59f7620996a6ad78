// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// affine returns an affinity to pods with the label app=web, in each form that a pod can use.
func affine(change func(*corev1.PodAffinityTerm)) *corev1.Affinity {
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}}
	if change != nil {
		change(&term)
	}
	required, preferred := []corev1.PodAffinityTerm{term}, []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}
	return &corev1.Affinity{
		PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred},
	}
}

// selectorsOf returns the selectors for other pods in a remote pod.
func selectorsOf(t *testing.T, pod *corev1.Pod) (all []labels.Selector) {
	t.Helper()
	a := pod.Spec.Affinity
	var terms []corev1.PodAffinityTerm
	terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	for _, p := range [][]corev1.WeightedPodAffinityTerm{a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution} {
		for _, w := range p {
			terms = append(terms, w.PodAffinityTerm)
		}
	}
	if len(terms) != 4 {
		t.Fatalf("the remote pod has %d terms, want 4", len(terms))
	}
	for _, term := range terms {
		s, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil || len(term.Namespaces) > 0 {
			t.Fatalf("term %v: %v, want one of the namespace of the pod", term, err)
		}
		all = append(all, s)
	}
	return all
}

// webIn returns the remote pod of a pod with the label app=web in a namespace of a home. The labels of the home
// pod claim another namespace.
func webIn(t *testing.T, home Home, namespace string, place Placement) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: types.UID(home.Cluster + namespace),
		Labels: map[string]string{"app": "web", LabelNamespace: "a", LabelCluster: testHome.Cluster}}}
	tr, err := Translate(pod, Target{Home: home, Namespace: "shared", Place: place})
	if err != nil {
		t.Fatal(err)
	}
	return tr.Pod
}

// TestSecurityC7SelectorsOfNamespacesDoNotMeet puts pods of two namespaces and of two home clusters into one
// remote namespace. A selector selects only pods of its own namespace and cluster, including pods of the
// cluster's other nodes.
func TestSecurityC7SelectorsOfNamespacesDoNotMeet(t *testing.T) {
	g := &globals{of: &Cluster{config: Config{Home: testHome}}}
	service := g.remoteService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}, "shared")
	selectors := append(selectorsOf(t, webIn(t, testHome, "a", Placement{Affinity: affine(nil), OwnAffinity: true})), labels.SelectorFromSet(service.Spec.Selector))
	for _, other := range []struct {
		home      Home
		namespace string
		want      bool
	}{
		{testHome, "a", true}, {Home{Cluster: testHome.Cluster, Node: "vk-1"}, "a", true}, {testHome, "b", false}, {Home{Cluster: "another", Node: testHome.Node}, "a", false},
	} {
		pod := webIn(t, other.home, other.namespace, Placement{})
		for _, s := range selectors {
			if s.Matches(labels.Set(pod.Labels)) != other.want {
				t.Errorf("%s of namespace a of %s, and the pod of %s of %v with %v: want it selected: %v", s, testHome.Cluster, other.namespace, other.home, pod.Labels, other.want)
			}
		}
	}
	if s := g.remoteService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}, "shared").Spec.Selector; len(s) > 0 {
		t.Errorf("a Service that selects nothing at home selects %v", s)
	}
}

// TestSecurityC7AffinityToOtherNamespaces checks that affinity terms about pods of other namespaces are refused,
// and that terms of the configuration stay unchanged.
func TestSecurityC7AffinityToOtherNamespaces(t *testing.T) {
	for what, change := range map[string]func(*corev1.PodAffinityTerm){
		"namespaces":           func(p *corev1.PodAffinityTerm) { p.Namespaces = []string{"a", "b"} },
		"the remote namespace": func(p *corev1.PodAffinityTerm) { p.Namespaces = []string{"shared"} },
		"all namespaces":       func(p *corev1.PodAffinityTerm) { p.NamespaceSelector = &metav1.LabelSelector{} },
		"a selected namespace": func(p *corev1.PodAffinityTerm) {
			p.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "u"}}
		_, err := Translate(pod, Target{Home: testHome, Place: Placement{Affinity: affine(change), OwnAffinity: true}})
		if !errdefs.IsInvalidInput(err) {
			t.Errorf("affinity to pods of %s: %v, want an error of the kind invalid-input", what, err)
		}
	}
	own := affine(func(p *corev1.PodAffinityTerm) { p.Namespaces = []string{"a"} })
	selectorsOf(t, webIn(t, testHome, "a", Placement{Affinity: own, OwnAffinity: true}))
	if own.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].Namespaces == nil {
		t.Error("the affinity of the pod at home was changed")
	}
	for _, s := range selectorsOf(t, webIn(t, testHome, "a", Placement{Affinity: affine(nil)})) {
		if !s.Matches(labels.Set{"app": "web"}) {
			t.Errorf("the configuration's affinity became %s", s)
		}
	}
}

// TestPodsOfBeforeGetTheirNamespace checks that a remote pod of a version without LabelNamespace gets that
// label, once.
func TestPodsOfBeforeGetTheirNamespace(t *testing.T) {
	r := &remote{}
	c := inMemory(t, r, 2, nil)
	c.UsePodTokens(&counted{})
	delete(r.pods.Items[1].Labels, LabelNamespace)
	for i := range r.pods.Items {
		if err := c.cache.pods.GetStore().Add(&r.pods.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	c.refreshNeeds(t.Context())
	var patched []string
	for _, request := range r.asked() {
		if strings.HasPrefix(request, "PATCH ") {
			patched = append(patched, request)
		}
	}
	if want := "PATCH /api/v1/namespaces/" + r.pods.Items[1].Namespace + "/pods/" + r.pods.Items[1].Name; len(patched) != 1 || patched[0] != want {
		t.Errorf("patches %q, want %q", patched, want)
	}
}
