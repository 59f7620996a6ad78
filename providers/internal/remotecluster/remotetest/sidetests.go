// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// RestartWritesNothing restarts the provider while pods run. It returns a pod whose label "app" has become
// "changed" since, by a single write.
func (s Side) RestartWritesNothing() *corev1.Pod {
	s.Helper()
	s.Put("default", "objects", "one")
	p, stop := s.Start()
	var pods []*corev1.Pod
	for i := range 20 {
		pods = append(pods, WithObjects(s.Pod("default", fmt.Sprintf("web-%d", i), Stays())))
		s.Create(p, pods[i])
	}
	ids := map[string]string{}
	for _, pod := range pods {
		ids[pod.Name] = s.UntilRuns(p, pod).Status.ContainerStatuses[0].ContainerID
	}
	stop()
	s.Line.Writes()
	p, _ = s.Start()
	for _, pod := range pods {
		if err := p.UpdatePod(s.Context(), pod.DeepCopy()); err != nil {
			s.Fatal(err)
		}
		got := s.UntilRuns(p, pod)
		if c := got.Status.ContainerStatuses[0]; c.ContainerID != ids[pod.Name] || c.RestartCount != 0 {
			s.Errorf("pod %s: after the restart the container is %s with %d restarts, before it was %s", pod.Name, c.ContainerID, c.RestartCount, ids[pod.Name])
		}
	}
	if list, err := p.GetPods(s.Context()); err != nil || len(list) != len(pods) {
		s.Errorf("after the restart there are %d pods (%v), want %d", len(list), err, len(pods))
	}
	if writes := s.Line.Writes(); len(writes) > 0 {
		s.Errorf("the restart wrote to the remote cluster: %q", writes)
	}
	s.Refreshed(p)            // without a write besides the change below
	pod := pods[0].DeepCopy() // a copy, because the provider reads the pod in the home cluster
	pod.Labels["app"] = "changed"
	if err := p.UpdatePod(s.Context(), pod.DeepCopy()); err != nil {
		s.Fatal(err)
	}
	if writes := s.Line.Writes(); len(writes) != 1 {
		s.Errorf("a change of a label made the writes %q, want one", writes)
	}
	return pod
}

// ShareOneCluster lets nodes of several homes share one remote cluster. Each node has a pod of the same name and
// UID.
func ShareOneCluster(all []Side) {
	t := all[0]
	t.Helper()
	pod := WithObjects(t.Pod("default", "web", Stays()))
	var providers []Provider
	for _, s := range all {
		s.Put("default", "objects", s.Cluster.Cluster)
		p, _ := s.Start()
		s.Create(p, pod.DeepCopy()) // even the UID is the same
		providers = append(providers, p)
	}
	ids := map[string]bool{}
	for i, s := range all {
		ids[s.UntilRuns(providers[i], pod).Status.ContainerStatuses[0].ContainerID] = true
		if list, err := providers[i].GetPods(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%s/%s sees %d pods (%v), want its own", s.Cluster.Cluster, s.Node, len(list), err)
		}
	}
	if len(ids) != len(all) {
		t.Errorf("%d containers run, want %d", len(ids), len(all))
	}
	t.Delete(providers[0], pod)
	t.UntilGone(providers[0], pod)
	t.Until("the copies of the first are gone", func() (bool, string) { n := t.Copies(); return n == 0, fmt.Sprint(n) })
	for i, s := range all[1:] {
		s.UntilRuns(providers[i+1], pod)
		if n := s.Copies(); n != 3 {
			t.Errorf("%s/%s has %d objects in the remote cluster, want its ConfigMap, Secret and files", s.Cluster.Cluster, s.Node, n)
		}
	}
}

// SameNameHundredTimes replaces a pod of one name a hundred times. Each pod is deleted when the next one exists.
func (s Side) SameNameHundredTimes() {
	s.Helper()
	p, _ := s.Start()
	var last *corev1.Pod
	for range 100 {
		pod := s.Pod("default", "web-0", Stays())
		s.Create(p, pod)
		if last != nil {
			s.Delete(p, last) // late: the next pod exists already
		}
		last = pod
	}
	s.UntilRuns(p, last)
	s.Until("only the last one is left", func() (bool, string) {
		list, err := p.GetPods(s.Context())
		return err == nil && len(list) == 1 && list[0].UID == last.UID, fmt.Sprint(len(list), err)
	})
	if n, err := s.Worker.Instances(last); n != 1 || err != nil {
		s.Errorf("%d instances of the last pod run (%v), want 1", n, err)
	}
}

// TokensOfHome reads the objects and the token of a pod in its container, and has the token renewed.
func (s Side) TokensOfHome() {
	s.Helper()
	s.Put("default", "objects", "one")
	p, _ := s.Start()
	pod := WithObjects(s.Pod("default", "web", program.Program{Show: []string{"/token/token", "/token/namespace", "/settings/key"}, Env: true, Stay: program.Forever}))
	s.Create(p, pod)
	s.UntilRuns(p, pod)
	for _, want := range []string{"token-1-of-web", "default", "one", "PASSWORD=one", "KUBERNETES_SERVICE_HOST=10.96.0.1"} {
		s.Until("the container shows "+want, func() (bool, string) { log := s.Log(p, pod); return strings.Contains(log, want), log })
	}
	// An expiring token is replaced until a token lives longer.
	s.ExpireTokens()
	next := WithObjects(s.Pod("default", "next", Stays()))
	s.Create(p, next)
	s.Until("the token is renewed", func() (bool, string) {
		got, err := s.Worker.API.Client.CoreV1().Secrets(s.Namespace("default")).Get(s.Context(), s.Cluster.PodName(next)+"-files", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		token := string(got.Data["token.0.0"])
		return token != "token-2-of-next" && strings.HasSuffix(token, "-of-next"), token
	})
}

// Dark deletes a pod at home while the remote cluster does not answer. Another pod stays.
func (s Side) Dark() {
	s.Helper()
	p, _ := s.Start()
	stay, leave := s.Pod("default", "stays", Stays()), s.Pod("default", "leaves", Stays())
	for _, pod := range []*corev1.Pod{stay, leave} {
		s.Create(p, pod)
		s.UntilRuns(p, pod)
	}
	s.Line.Outage(true)
	if err := p.Ping(s.Context()); err == nil {
		s.Error("Ping of a remote cluster that does not answer: got no error")
	}
	if err := p.DeletePod(s.Context(), leave); err == nil || errdefs.IsNotFound(err) {
		s.Errorf("DeletePod meanwhile: got %v, want an error that says nothing of the pod", err)
	}
	if list, err := p.GetPods(s.Context()); err == nil && len(list) != 2 { // an error once the provider knows of the outage
		s.Errorf("meanwhile there are %d pods, want both or an error", len(list))
	}
	if err := s.Lose(leave); err != nil { // unseen
		s.Fatal(err)
	}
	s.Line.Outage(false)
	s.UntilGone(p, leave)
	s.UntilRuns(p, stay)
	if err := p.DeletePod(s.Context(), leave); !errdefs.IsNotFound(err) {
		s.Errorf("DeletePod of the pod that went meanwhile: got %v, want the kind not-found", err)
	}
}

// NamespaceIsGone removes the remote namespace. No pod of home gets the blame, and the next pod runs once the
// namespace is made again.
func (s Side) NamespaceIsGone() {
	s.Helper()
	p, _ := s.Start()
	first, next := s.Pod("default", "first", Stays()), s.Pod("default", "next", Stays())
	s.Create(p, first)
	s.UntilRuns(p, first)
	if err := s.Worker.API.Client.CoreV1().Namespaces().Delete(s.Context(), s.Namespace("default"), metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	said := ""
	s.Until("a pod runs in the namespace again", func() (bool, string) {
		_ = p.Ping(s.Context()) // like a node; in some clusters Ping fails until then
		err := p.CreatePod(s.Context(), next.DeepCopy())
		if err != nil && (errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err)) {
			s.Fatalf("CreatePod in a namespace that goes: got %v, whose kind says that the pod is to blame", err)
		}
		if err != nil {
			said = err.Error()
		}
		return err == nil, said
	})
	if !strings.Contains(said, s.Namespace("default")) {
		s.Errorf("CreatePod in a namespace that goes: got %q, want the name of the namespace", said)
	}
	s.UntilGone(p, first)
	s.UntilRuns(p, next)
}
