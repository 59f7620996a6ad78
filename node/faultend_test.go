// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// exitCodes returns every exit code of the pod's containers that the API server ever had.
func (w *world) exitCodes(key string) (codes []int32) {
	for _, v := range w.api.History(key) {
		for _, c := range v.Pod.Status.ContainerStatuses {
			if end := c.State.Terminated; end != nil && (len(codes) == 0 || codes[len(codes)-1] != end.ExitCode) {
				codes = append(codes, end.ExitCode)
			}
		}
	}
	return codes
}

// last returns the last version of the pod in the API server.
func (w *world) last(key string) *corev1.Pod {
	history := w.api.History(key)
	return history[len(history)-1].Pod
}

// TestFault62PodThatNeverWasEndsWithoutExitCodes holds that the containers of a pod that never existed have no exit codes.
func TestFault62PodThatNeverWasEndsWithoutExitCodes(t *testing.T) {
	invented, pods := 0, 0
	for name, dark := range map[string][]string{
		"creates fail":                  {memory.Create},
		"creates and reads fail":        {memory.Create, memory.Get},
		"creates, reads and lists fail": {memory.Create, memory.Get, memory.List},
		"everything fails":              {memory.Create, memory.Get, memory.List, memory.Status, memory.Delete},
	} {
		for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever} {
			t.Run(name+", "+string(policy), func(t *testing.T) {
				b := memory.New()
				inWorld(t, b, func(w *world) {
					for _, method := range dark {
						b.Inject(memory.Fault{Method: method, Err: memory.ErrUnwell})
					}
					w.start()
					p := bound("p", "a")
					p.Spec.RestartPolicy = policy
					w.api.Create(p)
					w.pass(5 * time.Minute)
					w.api.Delete("d", "p", 30)
					w.pass(5 * time.Minute)
					b.Heal()
					w.pass(5 * time.Minute)
					codes := w.exitCodes("d/p")
					invented, pods = invented+len(codes), pods+1
					if len(codes) > 0 {
						w.Errorf("exit codes %v of a pod that never was", codes)
					}
					if last := w.last("d/p").Status.Phase; last != corev1.PodFailed || w.api.Pod("d", "p") != nil {
						w.Errorf("phase %s in the end, there: %v; want Failed and gone", last, w.api.Pod("d", "p") != nil)
					}
				})
			})
		}
	}
	faultrow.Record(t, 62, "pods whose CreatePod never succeeds, deleted while one call, some or all of the backend fail for 10 min", "%d exit codes of %d pods", invented, pods)
}

// TestFault62EndOfAPodInventsNoEndOfAContainer: the provider reports the pod as Succeeded or Failed, and its container as running. The end
// of the pod counts at once; the exit code of the container comes only from the backend.
func TestFault62EndOfAPodInventsNoEndOfAContainer(t *testing.T) {
	const code = 7
	invented, pods := 0, 0
	for name, configs := range map[string][]func(*PodControllerConfig){"notified": nil, "polled": {silent}} {
		for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
			for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever} {
				t.Run(name+", "+string(phase)+", "+string(policy), func(t *testing.T) {
					b := memory.New()
					inWorld(t, b, func(w *world) {
						w.start()
						p := bound("p", "a")
						p.Spec.RestartPolicy = policy
						w.api.Create(p)
						w.pass(time.Minute)
						b.Change("d/p", func(p *corev1.Pod) { p.Status.Phase = phase })
						w.pass(10 * time.Minute)
						w.wantPhase("p", phase)
						codes := w.exitCodes("d/p")
						invented, pods = invented+len(codes), pods+1
						got := w.api.Pod("d", "p").Status.ContainerStatuses[0]
						if wait := got.State.Waiting; len(codes) > 0 || wait == nil || wait.Reason != "ContainerStatusUnknown" || got.Ready {
							w.Errorf("exit codes %v, container %+v; want none, and one that waits", codes, got)
						}
						b.Change("d/p", func(p *corev1.Pod) { p.Status = memory.Ended(p, code).Status; p.Status.Phase = phase })
						w.pass(10 * time.Minute)
						w.wantPhase("p", phase)
						w.api.Delete("d", "p", 30)
						w.pass(time.Minute)
						if codes := w.exitCodes("d/p"); w.api.Pod("d", "p") != nil || len(codes) != 1 || codes[0] != code {
							w.Errorf("exit codes %v, want the backend's, %d; the pod is there: %v", codes, code, w.api.Pod("d", "p") != nil)
						}
					}, configs...)
				})
			}
		}
	}
	faultrow.Record(t, 62, "a report of Succeeded or Failed with a running container, and of its exit code 10 min later; reported and polled", "%d exit codes but the backend's, of %d pods", invented, pods)
}

// TestStopThatTellsNothingEndsWhatRan holds that containers without a reported end are ended as by a kubelet, because the backend has
// confirmed the stop.
func TestStopThatTellsNothingEndsWhatRan(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Minute)
		b.Script(func(_ context.Context, method, _ string) error {
			if method == memory.Delete {
				b.Lose("d/p")
			}
			return nil
		})
		w.api.Delete("d", "p", 30)
		w.pass(time.Minute)
		if codes := w.exitCodes("d/p"); len(codes) != 1 || codes[0] != 137 || w.last("d/p").Status.Phase != corev1.PodFailed {
			w.Errorf("exit codes %v, phase %s; want 137 and Failed", codes, w.last("d/p").Status.Phase)
		}
	})
}
