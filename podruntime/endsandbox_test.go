// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// enderRuntime is a runtime that implements SandboxEnder.
type enderRuntime struct {
	cri.RuntimeService
	mu   sync.Mutex
	told []string // guarded by mu
}

func (e *enderRuntime) tell(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, what)
}

// all returns the calls to the runtime so far.
func (e *enderRuntime) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.told)
}

func (e *enderRuntime) EndSandbox(id string) { e.tell("end " + id) }

func (e *enderRuntime) StopContainer(ctx context.Context, id string, timeout int64) error {
	e.tell("stop")
	return e.RuntimeService.StopContainer(ctx, id, timeout)
}

// TestRuntimeIsToldThatAPodEnds: EndSandbox is called before the first container of the pod is stopped. A stop for a restart does not end the
// sandbox.
func TestRuntimeIsToldThatAPodEnds(t *testing.T) {
	var sick atomic.Bool
	config := fakecri.Config{Exec: func(context.Context, fakecri.Container, []string) fakecri.Answer {
		if sick.Load() {
			return fakecri.Answer{Code: 1}
		}
		return fakecri.Answer{}
	}}
	inWorld(t, config, func(t *testing.T, w *world) {
		ender := &enderRuntime{RuntimeService: w.Client()}
		w.kill()
		w.configure = func(c *Config) { c.Runtime = ender }
		w.start()
		pod := podOf("web", "main")
		pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"check"}}},
			PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 1, SuccessThreshold: 1,
		}
		w.create(pod)
		w.awaitRunning(pod)
		sick.Store(true)
		w.await(pod, "started again", func(s *corev1.PodStatus) bool { return s.ContainerStatuses[0].RestartCount > 0 })
		sick.Store(false)
		w.awaitRunning(pod)
		before := ender.all()
		if len(before) == 0 || slices.ContainsFunc(before, func(s string) bool { return s != "stop" }) {
			t.Errorf("for a container that is started again: got %v, want stops only", before)
		}
		want := []string{"end " + w.Sandboxes()[0].ID, "stop"}
		w.delete(pod, 10)
		w.awaitGone(pod)
		if got := ender.all()[len(before):]; !slices.Equal(got, want) {
			t.Errorf("for a pod that ends: got %v, want %v", got, want)
		}
	})
}
