// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// TestRememberedRuns: if a backend reports one run only, the last state is the previous run that was seen, and
// never an unseen run.
func TestRememberedRuns(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, container("a"))
	seen := func(c podstatus.Container, restarts int32) podstatus.Container {
		c.Restarts = restarts
		return c
	}
	waits := podstatus.Container{Name: "a", Reason: "CrashLoopBackOff"}
	for _, c := range []struct {
		name string
		seen []podstatus.Container
		want string
	}{
		{"the first run", []podstatus.Container{runs("a")}, "Running a:runs+r"},
		{"ended, then waits", []podstatus.Container{exited("a", 3), waits}, "Running a:CrashLoopBackOff<Error(3)"},
		{"ended, then runs again", []podstatus.Container{exited("a", 3), seen(runs("a"), 1)}, "Running a:runs+r<Error(3)x1"},
		{"goes on to run", []podstatus.Container{exited("a", 3), seen(runs("a"), 1), seen(runs("a"), 1)}, "Running a:runs+r<Error(3)x1"},
		{"ended twice", []podstatus.Container{exited("a", 3), seen(exited("a", 4), 1)}, "Running a:Error(4)<Error(3)x1"},
		{"is told twice to have ended", []podstatus.Container{exited("a", 3), exited("a", 3)}, "Running a:Error(3)"},
		{"nobody has seen the last end", []podstatus.Container{exited("a", 3), seen(runs("a"), 1), seen(runs("a"), 2)}, "Running a:runs+rx2"},
		{"nobody has seen the first end", []podstatus.Container{runs("a"), seen(runs("a"), 1)}, "Running a:runs+rx1"},
		{"ended with 0, then waits", []podstatus.Container{exited("a", 0), waits}, "Running a:CrashLoopBackOff<Completed(0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s corev1.PodStatus
			var was *corev1.ContainerStatus
			for _, k := range c.seen {
				k.Remember(was)
				s = podstatus.Status(p, of(k))
				was = &s.ContainerStatuses[0]
			}
			if got := tell(s); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
