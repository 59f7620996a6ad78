// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// readmeRole is the role that the README tells to paste.
func readmeRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if role := (&rbacv1.ClusterRole{}); strings.Contains(block, "kind: ClusterRole") {
			if err := yaml.UnmarshalStrict([]byte(block), role); err != nil {
				t.Fatal(err)
			}
			return role
		}
	}
	t.Fatal("README.md has no ClusterRole")
	return nil
}

// asTheReadmeSays lets a node ask with the rights of the README and no others.
func (u *upper) asTheReadmeSays() {
	u.Helper()
	user, role := u.worker.api.NodeName(u.T), readmeRole(u.T)
	role.Name = user
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := u.worker.api.Client.RbacV1().ClusterRoles().Create(u.Context(), role, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
	if _, err := u.worker.api.Client.RbacV1().ClusterRoleBindings().Create(u.Context(), binding, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
	access := rest.CopyConfig(u.worker.api.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	u.access = u.line.through(access)
}

// TestLeastRights does all that a node does, with the rights that the README names.
func TestLeastRights(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "rights", "vk-0")
	u.config.Capacity = nil // nodes and all pods are read, too
	u.asTheReadmeSays()
	u.put("default", "objects", "one")
	if err := u.services.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", UID: "another"}}); err != nil {
		t.Fatal(err)
	}
	p, _ := u.start()
	pod := withObjects(u.pod("default", "web", program.Program{Print: []string{"hello"}, Listen: 18080, Stay: program.Forever}))
	u.create(p, pod)
	u.untilRuns(p, pod)
	u.until("its log", func() (bool, string) { log := u.log(p, pod); return strings.Contains(log, "hello"), log })
	u.put("default", "objects", "two")
	u.until("the copy is replaced", func() (bool, string) {
		for _, r := range u.line.seen() {
			if strings.HasPrefix(r, "PUT ") {
				return true, ""
			}
		}
		return false, "nothing was written"
	})
	pod = pod.DeepCopy() // the one of before is at home, where the provider reads it
	pod.Labels["app"] = "changed"
	if err := p.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
		t.Errorf("UpdatePod: %v", err)
	}
	for what, command := range map[string]program.Program{"exec": {Print: []string{"there"}}} {
		c := newConsole()
		if err := p.RunInContainer(t.Context(), "default", "web", "main", append([]string{"program"}, command.Args()...), c); err != nil || c.out.String() != "there\n" {
			t.Errorf("%s: wrote %q (%v)", what, c.out.String(), err)
		}
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "vk-0"}}
	u.until("the node has room", func() (bool, string) {
		p.ConfigureNode(t.Context(), n)
		cpu := n.Status.Allocatable[corev1.ResourceCPU]
		return cpu.Value() >= 1000, cpu.String()
	})
	u.delete(p, pod)
	u.untilGone(p, pod)
	u.until("the copies are gone", func() (bool, string) { n := u.copies(); return n == 0, fmt.Sprint(n) })
}

// TestMissingRightsAreSaid has an access that may do nothing.
func TestMissingRightsAreSaid(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "no-rights", "vk-0")
	access := rest.CopyConfig(w.api.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	u.access = u.line.through(access)
	p, _ := u.start()
	u.until("Ping says what is missing", func() (bool, string) {
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

// TestOneNamespace has all pods in one namespace, and with it the rights on pods, ConfigMaps and Secrets there alone.
func TestOneNamespace(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "one-namespace", "vk-0")
	u.config.Namespace = w.api.Namespace(t)
	user, all := w.api.NodeName(t), readmeRole(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}}
	for _, rule := range all.Rules {
		if r := rule.Resources[0]; r != "namespaces" && r != "nodes" && r != "services" && rule.APIGroups[0] == "" {
			role.Rules = append(role.Rules, rule)
		}
	}
	if _, err := w.api.Client.RbacV1().Roles(u.config.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := w.api.Client.RbacV1().RoleBindings(u.config.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	access := rest.CopyConfig(w.api.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	u.access = u.line.through(access)
	p, _ := u.start()
	var pods []*corev1.Pod
	for _, namespace := range []string{"a", "b"} {
		u.put(namespace, "objects", namespace)
		pod := withObjects(u.pod(namespace, "web", program.Program{Env: true, Stay: program.Forever}))
		u.create(p, pod)
		pods = append(pods, pod)
	}
	for _, pod := range pods {
		u.untilRuns(p, pod)
		want := "PASSWORD=" + pod.Namespace + "\n"
		u.until("the variable of its own namespace", func() (bool, string) { log := u.log(p, pod); return strings.Contains(log, want), log })
	}
	if list, err := w.api.Client.CoreV1().Pods(u.config.Namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
		t.Errorf("the namespace has %d pods (%v), want both", len(list.Items), err)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	for _, pod := range pods {
		u.delete(p, pod)
		u.untilGone(p, pod)
	}
}
