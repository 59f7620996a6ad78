// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// asTheReadmeSays restricts the node to the rights of the README.
func (u *upper) asTheReadmeSays() {
	u.Helper()
	u.user = u.worker.API.NodeName(u.T)
	u.access = u.line.Through(remotetest.AsTheReadmeSays(u.T, u.worker.API, u.user, "virtual-kubelet-tensilekube"))
}

// TestLeastRights does everything that a node does, with only the rights of the README.
func TestLeastRights(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "rights", "vk-0")
	u.config.Capacity = nil // without a configured capacity, the provider also reads nodes and all pods
	u.asTheReadmeSays()
	u.Put("default", "objects", "one")
	u.Identify("another")
	p, _ := u.start()
	pod := withObjects(u.Pod("default", "web", program.Program{Print: []string{"hello"}, Listen: 18080, Stay: program.Forever}))
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	u.untilSaid(pod, "Scheduled")
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
	pod.Labels["app"] = "changed"
	if err := p.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
		t.Errorf("UpdatePod: %v", err)
	}
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
	u := newUpper(t, w, "no-rights", "vk-0")
	u.access = u.line.Through(w.API.As("nobody"))
	p, _ := u.start()
	u.Until("Ping says what is missing, and not only that its time is over", func() (bool, string) {
		ctx, cancel := context.WithTimeout(t.Context(), node.DefaultPingInterval)
		defer cancel()
		err := p.Ping(ctx)
		return err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "cannot list resource"), fmt.Sprint(err)
	})
	if list, err := p.GetPods(t.Context()); err == nil {
		t.Errorf("GetPods without the right to list: got %d pods and no error", len(list))
	}
	if _, err := p.GetPod(t.Context(), "default", "web"); err == nil || errdefs.IsNotFound(err) || apierrors.IsNotFound(err) {
		t.Errorf("GetPod without the right to list: got %v, want an error that says nothing of the pod", err)
	}
}

// TestOneNamespace puts all pods into one namespace, so that the rights on pods, ConfigMaps and Secrets are
// limited to it.
func TestOneNamespace(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "one-namespace", "vk-0")
	u.config.Namespace = w.API.Namespace(t)
	u.Identify("another")
	user := w.API.NodeName(t)
	var rules []rbacv1.PolicyRule
	for _, rule := range remotetest.ReadmeRules(t, "README.md", "virtual-kubelet-tensilekube") {
		if r := rule.Resources[0]; r != "namespaces" && r != "nodes" && r != "services" && rule.APIGroups[0] == "" {
			rules = append(rules, rule)
		}
	}
	w.API.Allow(t, user, u.config.Namespace, rules)
	u.access = u.line.Through(w.API.As(user))
	p, _ := u.start()
	var pods []*corev1.Pod
	for _, namespace := range []string{"a", "b"} {
		u.Put(namespace, "objects", namespace)
		pod := withObjects(u.Pod(namespace, "web", program.Program{Env: true, Stay: program.Forever}))
		u.Create(p, pod)
		pods = append(pods, pod)
	}
	for _, pod := range pods {
		u.UntilRuns(p, pod)
		want := "PASSWORD=" + pod.Namespace + "\n"
		u.untilSaid(pod, "Scheduled")
		u.Until("the variable of its own namespace", func() (bool, string) { log := u.Log(p, pod); return strings.Contains(log, want), log })
	}
	if list, err := w.API.Client.CoreV1().Pods(u.config.Namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
		t.Errorf("the namespace has %d pods (%v), want both", len(list.Items), err)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	for _, pod := range pods {
		u.Delete(p, pod)
		u.UntilGone(p, pod)
	}
}
