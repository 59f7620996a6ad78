// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// asTheReadmeSays restricts the node to the rights of the README.
func (u *upper) asTheReadmeSays() {
	u.Helper()
	user := u.worker.API.NodeName(u.T)
	u.access = u.line.Through(remotetest.AsTheReadmeSays(u.T, u.worker.API, user, "virtual-kubelet-admiralty"))
}

// TestLeastRights does everything that a node does, with only the rights of the README.
func TestLeastRights(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	startChaperons(t, w.API)
	u := newUpper(t, w, "rights", "target-0")
	u.config.Capacity = nil // nodes and all pods are read, too
	u.asTheReadmeSays()
	u.Put("default", "objects", "one")
	p, _ := u.start()
	pod := u.Pod("default", "web", program.Program{Env: true, Stay: program.Forever})
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "objects"}, Key: "key"}}}}
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	u.Until("its log", func() (bool, string) {
		log := u.Log(p, pod)
		return strings.Contains(log, "PASSWORD=one"), log
	})
	pod = pod.DeepCopy() // the provider reads the earlier one, which is at home
	pod.Labels["app"] = "changed"
	if err := p.UpdatePod(t.Context(), pod.DeepCopy()); err != nil || u.remote(pod).Labels["app"] != "changed" {
		t.Errorf("UpdatePod: %v, and the label is %q", err, u.remote(pod).Labels["app"])
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if err := p.Examine(t.Context()); err != nil {
		t.Errorf("Examine: %v", err)
	}
	n := &corev1.Node{}
	u.Until("the node has room", func() (bool, string) {
		p.ConfigureNode(t.Context(), n)
		cpu := n.Status.Allocatable[corev1.ResourceCPU]
		return cpu.Value() >= 1000, cpu.String()
	})
	u.Delete(p, pod)
	u.UntilGone(p, pod)
	u.untilNothingIsLeft()
}

// TestMissingChaperonsAreSaid has a target cluster whose PodChaperons the node may not see.
func TestMissingChaperonsAreSaid(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "no-rights", "target-0")
	u.access = u.line.Through(w.API.As("nobody"))
	p, _ := u.start()
	u.Until("Ping says what is missing", func() (bool, string) {
		err := p.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "podchaperons"), fmt.Sprint(err)
	})
	if err := p.Examine(t.Context()); err == nil || !strings.Contains(err.Error(), "create, delete podchaperons") {
		t.Errorf("Examine: got %v, want the missing rights", err)
	}
}
