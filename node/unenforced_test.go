// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// restricted returns a pod that the Pod Security Standard restricted admits.
func restricted() *corev1.Pod {
	pod, no := bound("p", "1"), false
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return pod
}

// told returns the events about features that a pod runs without.
func (w *world) told() []string {
	return slices.DeleteFunc(w.events(), func(e string) bool { return !strings.Contains(e, eventUnenforced) })
}

// TestUnenforcedPodRunsAndSaysSoOnce: the backend never receives the fields, and the pod has one event, regardless of failed creates,
// changes and restarts.
func TestUnenforcedPodRunsAndSaysSoOnce(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		b.Inject(memory.Fault{Method: memory.Create, Times: 3, Err: errors.New("no")})
		w.start()
		w.api.Create(restricted())
		w.pass(10 * time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		if n := b.Count("create d/p"); n != 4 {
			t.Errorf("%d creates, want three that fail and one", n)
		}
		const want = "Warning UnenforcedPodSpec this node runs the pod without spec.containers[0].securityContext.capabilities.drop: the backend has no Capabilities; " +
			"spec.containers[0].securityContext.allowPrivilegeEscalation: the backend has no NoNewPrivileges; spec.securityContext.seccompProfile: the backend has no Seccomp"
		if got := w.told(); len(got) != 1 || got[0] != want {
			t.Errorf("events are %q, want one: %s", got, want)
		}
		w.api.Change("d", "p", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "another" })
		w.pass(time.Minute)
		w.halt()
		w.start()
		w.pass(time.Minute)
		if got := w.told(); len(got) > 0 {
			t.Errorf("it is said again: %q", got)
		}
		got := b.Has("d/p")
		if got == nil || got.Spec.Containers[0].Image != "another" || len(capability.Needs(got)) > 0 {
			t.Errorf("the backend has %+v, want the changed pod without what it lacks", got)
		}
		if kept := w.api.Pod("d", "p"); len(capability.Needs(kept)) != 3 {
			t.Errorf("the pod in the API server has changed: %+v", kept.Spec)
		}
	}, declares(capability.Only().Accept(capability.OwnMachine()...)))
}

// TestOperatorDecidesWhatIsUnenforced: the operator's list replaces the provider's.
func TestOperatorDecidesWhatIsUnenforced(t *testing.T) {
	for name, accept := range map[string][]capability.Feature{"none": {}, "some": {capability.Seccomp}} {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.start()
			w.api.Create(restricted())
			w.pass(time.Minute)
			s := w.api.Pod("d", "p").Status
			if s.Reason != "UnsupportedPodSpec" || strings.Contains(s.Message, "seccompProfile") != (name == "none") {
				t.Errorf("%s: the pod is %s %q, want it refused for what is not accepted", name, s.Reason, s.Message)
			}
			wantCalls(t, b)
		}, declares(capability.Only().Accept(capability.OwnMachine()...)), func(cfg *PodControllerConfig) { cfg.AcceptUnenforced = accept })
	}
}

// keepsStopped is a provider that records the pods in DeletePod.
type keepsStopped struct {
	declaring
	stopped *[]*corev1.Pod
}

func (k keepsStopped) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	*k.stopped = append(*k.stopped, pod.DeepCopy())
	return k.declaring.DeletePod(ctx, pod)
}

// TestStopIsGivenThePodWithoutWhatItLacks: a provider that stores the pod from the stop request does not begin to probe it, also after a
// restart.
func TestStopIsGivenThePodWithoutWhatItLacks(t *testing.T) {
	b := memory.New()
	var stopped []*corev1.Pod
	inWorld(t, b, func(w *world) {
		w.start()
		pod := bound("p", "1")
		pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}}
		w.api.Create(pod)
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		w.halt()
		w.start()
		w.api.Delete("d", "p", 30)
		w.pass(time.Minute)
		if len(stopped) == 0 {
			t.Fatal("the pod is not stopped")
		}
		for _, pod := range stopped {
			if pod.Spec.Containers[0].LivenessProbe != nil {
				t.Error("the stop gives the provider the probe that the pod runs without")
			}
		}
	}, declares(capability.Only()), func(cfg *PodControllerConfig) {
		cfg.AcceptUnenforced = []capability.Feature{capability.NetworkProbes}
		cfg.Provider = keepsStopped{cfg.Provider.(declaring), &stopped}
	})
}
