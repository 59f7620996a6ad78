// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// asTheReadmeSays restricts the node to the rights of the README.
func (u *home) asTheReadmeSays() {
	u.Helper()
	user := u.worker.API.NodeName(u.T)
	u.access = u.line.Through(remotetest.AsTheReadmeSays(u.T, u.worker.API, user, "virtual-kubelet-liqo"))
}

// TestLeastRights does everything that a node does, with only the rights of the README.
func TestLeastRights(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "rights", "vk-0")
	u.config.Capacity = nil // nodes and all pods are read, too
	u.asTheReadmeSays()
	u.Put("default", "objects", "one")
	u.Identify("another")
	p, _ := u.start()
	pod := withObjects(u.Pod("default", "web", program.Program{Print: []string{"hello"}, Listen: 18080, Stay: program.Forever}))
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	u.Until("its log", func() (bool, string) { log := u.Log(p, pod); return strings.Contains(log, "hello"), log })
	u.Put("default", "objects", "two")
	u.Until("the copy is replaced", func() (bool, string) {
		for _, r := range u.line.Seen() {
			if strings.HasPrefix(r, "PUT ") {
				return true, ""
			}
		}
		return false, "nothing was written"
	})
	pod = pod.DeepCopy() // the provider reads the earlier one, which is at home
	pod.Labels["app"], pod.Spec.Containers[0].Image = "changed", "program:2"
	if err := p.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
		t.Errorf("UpdatePod: %v", err)
	}
	u.Until("the change is there", func() (bool, string) {
		got := u.remote(pod)
		return got.Labels["app"] == "changed" && got.Spec.Containers[0].Image == "program:2", fmt.Sprint(got.Labels, got.Spec.Containers[0].Image)
	})
	for what, command := range map[string]program.Program{"exec": {Print: []string{"there"}}} {
		c := &remotetest.Console{}
		if err := p.RunInContainer(t.Context(), "default", "web", "main", append([]string{"program"}, command.Args()...), c); err != nil || c.Out.String() != "there\n" {
			t.Errorf("%s: wrote %q (%v)", what, c.Out.String(), err)
		}
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "vk-0"}}
	u.Until("the node has room", func() (bool, string) {
		p.ConfigureNode(t.Context(), n)
		cpu := n.Status.Allocatable[corev1.ResourceCPU]
		return cpu.Value() >= 1000, cpu.String()
	})
	u.Delete(p, pod)
	u.UntilGone(p, pod)
	u.Until("the copies are gone", func() (bool, string) { n := u.copies(); return n == 0, fmt.Sprint(n) })
}

// TestMissingRightsAreSaid has an access without any rights.
func TestMissingRightsAreSaid(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "no-rights", "vk-0")
	u.access = u.line.Through(w.API.As("nobody"))
	p, _ := u.start()
	u.Until("Ping says what is missing", func() (bool, string) {
		err := p.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "cannot list resource"), fmt.Sprint(err)
	})
	if list, err := p.GetPods(t.Context()); err == nil {
		t.Errorf("GetPods without the right to list: got %d pods and no error", len(list))
	}
	if _, err := p.GetPod(t.Context(), "default", "web"); err == nil || errdefs.IsNotFound(err) || apierrors.IsNotFound(err) {
		t.Errorf("GetPod without the right to list: got %v, want an error that says nothing of the pod", err)
	}
}

// TestRightsOfLiqo uses one namespace, with exactly the rights that Liqo gives its own virtual nodes there.
func TestRightsOfLiqo(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "one-namespace", "vk-0")
	delete(u.config.Namespaces, "other")
	user, namespace, all := w.API.NodeName(t), u.config.Namespaces["default"], []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	w.API.Allow(t, user, namespace, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "events", "secrets", "services"}, Verbs: all},
		{APIGroups: []string{group}, Resources: []string{"shadowpods"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/attach", "pods/exec"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"create", "get"}},
	})
	u.access = u.line.Through(w.API.As(user))
	u.Put("default", "objects", "one")
	p, _ := u.start()
	pod := withObjects(u.Pod("default", "web", program.Program{Print: []string{"hello"}, Stay: program.Forever}))
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	u.Until("its log", func() (bool, string) { log := u.Log(p, pod); return strings.Contains(log, "hello"), log })
	c := &remotetest.Console{}
	if err := p.RunInContainer(t.Context(), "default", "web", "main", append([]string{"program"}, program.Program{Print: []string{"there"}}.Args()...), c); err != nil || c.Out.String() != "there\n" {
		t.Errorf("exec: wrote %q (%v)", c.Out.String(), err)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if err := p.CreatePod(t.Context(), u.Pod("other", "web", stays())); err == nil || !strings.Contains(err.Error(), reasonBackOff) {
		t.Errorf("CreatePod in another namespace: got %v, want a refusal", err)
	}
	u.Delete(p, pod)
	u.UntilGone(p, pod)
	u.Until("the copies are gone", func() (bool, string) { n := u.copies(); return n == 0, fmt.Sprint(n) })
}
