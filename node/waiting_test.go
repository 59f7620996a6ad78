// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// failing returns a backend whose calls of the method fail.
func failing(method string, err error) *memory.Backend {
	b := memory.New()
	b.Script(func(_ context.Context, called, _ string) error {
		if called == method {
			return err
		}
		return nil
	})
	return b
}

// described returns the parts of a pod that kubectl describe shows, without events of success.
func (w *world) described(name string) string {
	pod := w.api.Pod("d", name)
	text := fmt.Sprintf("%s %s: %s\n", pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			text += fmt.Sprintf("waiting %s: %s\n", c.State.Waiting.Reason, c.State.Waiting.Message)
		}
	}
	for _, e := range slices.Compact(w.events()) {
		if strings.HasPrefix(e, "Warning ") {
			text += e + "\n"
		}
	}
	return text
}

// TestWaitingPodSaysTheOneThingThatIsWrong checks the message for each reason why a pod waits on a node.
func TestWaitingPodSaysTheOneThingThatIsWrong(t *testing.T) {
	create := func(w *world) { w.api.Create(bound("p", "a")) }
	slow := memory.New()
	slow.StopTime = 3 * time.Minute
	hangs := memory.New()
	hangs.Inject(memory.Fault{Method: memory.Create, Hang: true})
	for name, test := range map[string]struct {
		backend *memory.Backend
		create  func(w *world)
		after   time.Duration
		want    string
	}{
		"the backend is dark": {failing("create", errors.New("dial tcp 192.0.2.1:443: connect: connection refused")), create, 5 * time.Minute,
			"Pending ProviderFailed: create pod d/p: dial tcp 192.0.2.1:443: connect: connection refused; it is tried again\n" +
				"Warning ProviderCreateFailed create pod d/p: dial tcp 192.0.2.1:443: connect: connection refused; it is tried again\n"},
		"a quota is used up": {failing("create", errdefs.RetryAfter(errors.New("the quota of 10 CPUs is used up"), time.Minute)), create, 5 * time.Minute,
			"Pending ProviderFailed: create pod d/p: the quota of 10 CPUs is used up; it is tried again\n" +
				"Warning ProviderCreateFailed create pod d/p: the quota of 10 CPUs is used up; it is tried again\n"},
		"the provider refuses": {failing("create", errdefs.InvalidInput("no such size")), create, 5 * time.Minute,
			"Pending ProviderFailed: create pod d/p: no such size; tried again when the pod changes, else after some minutes\n" +
				"waiting CreateContainerConfigError: create pod d/p: no such size; tried again when the pod changes, else after some minutes\n" +
				"Warning ProviderPodRejected create pod d/p: no such size; tried again when the pod changes, else after some minutes\n"},
		"the create hangs": {hangs, create, 5 * time.Minute,
			"Pending ProviderFailed: CreatePod was called at 2000-01-01T00:00:00Z and has not returned\n" +
				"Warning ProviderCallHangs CreatePod was called at 2000-01-01T00:00:00Z and has not returned\n"},
		"a ConfigMap is missing": {memory.New(), func(w *world) {
			pod := bound("p", "a")
			pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}
			w.api.Create(pod)
		}, 5 * time.Minute,
			"Pending ProviderFailed: resolve the environment of pod d/p: container c cannot start: ConfigMap d/cm does not exist; create it, or mark the reference optional; it is tried again\n" +
				"waiting CreateContainerConfigError: resolve the environment of pod d/p: container c cannot start: ConfigMap d/cm does not exist; create it, or mark the reference optional; it is tried again\n" +
				"Warning MandatoryConfigMapNotFound container c waits: ConfigMap d/cm does not exist; create it, or mark the reference optional\n"},
		"another pod has the name": {slow, func(w *world) {
			w.api.Create(bound("p", "old"))
			w.pass(time.Second)
			w.events()
			w.api.Delete("d", "p", 0)
			w.api.Create(bound("p", "new"))
		}, 2 * time.Minute,
			"Pending ProviderFailed: the backend still has another pod under this name (UID old), which must stop first\n" +
				"Warning FailedSync the backend still has another pod under this name (UID old), which must stop first\n"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, test.backend, func(w *world) {
				w.start()
				test.create(w)
				w.pass(test.after)
				if got := w.described("p"); got != test.want {
					t.Errorf("it says\n%s\nwant\n%s", got, test.want)
				}
			})
		})
	}
}

// TestPodInQuarantineSaysSo holds that there is one event while the quarantine lasts.
func TestPodInQuarantineSaysSo(t *testing.T) {
	b, log := memory.New(), &eventLog{}
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 20, corev1.RestartPolicyAlways)
		b.Lie(memory.Lie{Empty: true, Reads: true})
		w.pass(3 * time.Minute)
		told := log.of(eventHeldBack)
		keys := map[string]bool{}
		for _, e := range told {
			keys[e.key] = true
		}
		if len(told) != 20 || len(keys) != 20 {
			t.Errorf("%d events about %d pods, want one for each of 20", len(told), len(keys))
		}
		b.Truth()
		w.pass(time.Minute)
		b.Lie(memory.Lie{Empty: true, Reads: true})
		w.pass(3 * time.Minute)
		if n := len(log.of(eventHeldBack)); n != 40 {
			t.Errorf("%d events after the second doubt, want 40", n)
		}
	}, log.use)
}
