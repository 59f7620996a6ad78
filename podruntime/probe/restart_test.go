// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// older returns a container that was started an hour before the Prober.
func older(id string, change ...func(*corev1.Container)) Target {
	t := running(id, change...)
	t.StartedAt = t.StartedAt.Add(-time.Hour)
	return t
}

func withStatus(t Target, s corev1.ContainerStatus) Target {
	t.Pod.Status.ContainerStatuses = append(t.Pod.Status.ContainerStatuses, s)
	return t
}

func TestOlderContainerStaysReady(t *testing.T) {
	ready := func() *corev1.Probe { return execProbe("ready") }
	for name, tc := range map[string]struct {
		target Target
		want   string
	}{
		"its status says so": {
			withStatus(older("a", readiness(ready())), corev1.ContainerStatus{ContainerID: "x://a", Ready: true}),
			"started=true ready=true failed=",
		},
		"its status says no": {
			withStatus(older("a", readiness(ready())), corev1.ContainerStatus{ContainerID: "x://a"}),
			"started=true ready=false failed=",
		},
		"the status is of a run before": {
			withStatus(older("a", readiness(ready())), corev1.ContainerStatus{ContainerID: "x://b", Ready: true}),
			"started=true ready=false failed=",
		},
		"startup unknown": {older("a", startup(execProbe("start"))), "started=true ready=true failed="},
		"startup known to be done": {
			withStatus(older("a", startup(execProbe("start"))), corev1.ContainerStatus{ContainerID: "x://a", Started: ptr.To(true)}),
			"started=true ready=true failed=",
		},
		"startup known to be under way": {
			withStatus(older("a", startup(execProbe("start"))), corev1.ContainerStatus{ContainerID: "x://a", Started: ptr.To(false)}),
			"started=false ready=false failed=",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				tc.target.StartedAt = time.Now().Add(-time.Hour)
				w.p.Ensure(tc.target)
				w.want("a", tc.want)
			})
		})
	}
}

// TestJitterOnlyAfterARestart: the first probes of containers from before a restart are spread over time. The
// probes of new containers begin at once.
func TestJitterOnlyAfterARestart(t *testing.T) {
	inBubble(t, func(w *world) {
		w.p.Ensure(older("a", readiness(execProbe("old"))))
		w.p.Ensure(running("b", readiness(execProbe("new"))))
		w.after(6 * time.Second)
		w.wantRuns("0s new", "5s old")
	})
}

func TestStartupOfOlderContainerMayFail(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answers("start", errExit)
		w.p.Ensure(older("a", startup(execProbe("start", fail(1))), readiness(execProbe("ready"))))
		w.want("a", "started=true ready=false failed=")
		w.after(6 * time.Second)
		w.want("a", "started=false ready=false failed=Startup")
	})
}

func TestStartupKnownToBeDoneIsNotAskedAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		w.p.Ensure(withStatus(older("a", startup(execProbe("start"))), corev1.ContainerStatus{ContainerID: "x://a", Started: ptr.To(true)}))
		w.after(time.Minute)
		w.wantRuns()
	})
}

// TestContainerThatAnotherProcessFoundReady: a container that an earlier process found ready stays ready until
// its probe fails. Its age and the initial delay of its probe do not matter.
func TestContainerThatAnotherProcessFoundReady(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answers("ready", errExit)
		c := running("a", startup(execProbe("start")), readiness(execProbe("ready", delay(3600), fail(1))))
		c.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "x://a", Started: new(true), Ready: true}}
		c.Earlier = true
		w.p.Ensure(c)
		w.want("a", "started=true ready=true failed=")
		w.after(10 * time.Second)
		w.want("a", "started=true ready=false failed=") // after half a period
		w.wantRuns("5s ready")
	})
}
