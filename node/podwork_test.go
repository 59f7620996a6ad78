// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestWorkSaysWhatPodsWaitFor goes through the lifecycle of a pod and its obstacles.
func TestWorkSaysWhatPodsWaitFor(t *testing.T) {
	b := memory.New()
	b.Inject(memory.Fault{Method: memory.Create, Err: errors.New("dark")})
	inWorld(t, b, func(w *world) {
		work := func() PodWork {
			t.Helper()
			all := w.ctl.Work(t.Context())
			if len(all) != 1 {
				t.Fatalf("the work is %+v, want that on one pod", all)
			}
			return all[0]
		}
		wants := func(when, want string) {
			t.Helper()
			if got := work(); got.WaitsFor != want || (want != "") == got.Since.IsZero() {
				t.Errorf("%s: it waits for %q since %v, want %q", when, got.WaitsFor, got.Since, want)
			}
		}
		w.start()
		pod := bound("p", "a")
		pod.CreationTimestamp.Time = time.Now()
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
		w.api.Create(pod)
		w.pass(time.Minute)
		wants("dark", "the backend to create the pod")
		if got := work(); got.Error != "create pod d/p: dark; it is tried again" || got.Tries < 5 || !got.NextTry.After(time.Now()) || got.Phase != corev1.PodPending {
			t.Errorf("the work is %+v, want the error, and the time of the next try", got)
		}
		b.Heal()
		w.ctl.Kick()
		w.pass(time.Second)
		wants("light", "")
		b.Change("d/p", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodPending
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "i", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		})
		w.pass(time.Second)
		wants("no image", "container c: ImagePullBackOff: no such image")
		b.Inject(memory.Fault{Method: memory.Delete, Err: errors.New("locked")})
		w.api.Delete("d", "p", 30)
		w.pass(time.Second)
		wants("delete", "the backend to accept the stop")
		b.Heal()
		w.pass(2 * time.Minute)
		if all := w.ctl.Work(t.Context()); len(all) != 0 {
			t.Errorf("the work is %+v, want none", all)
		}
	})
}
