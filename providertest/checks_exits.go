// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

var exits = []Check{
	{
		Name: "exits/zero", Why: "a Job is complete when its pod Succeeded",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			p := c.runToEnd(c.newPod("zero", program.Program{Stay: c.h.Tick}))
			if end := c.endOf(p, "main"); p.Status.Phase != corev1.PodSucceeded || end.ExitCode != 0 {
				c.Errorf("exit 0: the pod is %s, want Succeeded with exit code 0", describePod(p))
			}
		},
	},
	{
		Name: "exits/code", Why: "users and Jobs with a podFailurePolicy decide by the exit code",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			p := c.runToEnd(c.newPod("code", program.Program{Stay: c.h.Tick, Exit: 7}))
			if end := c.endOf(p, "main"); p.Status.Phase != corev1.PodFailed || end.ExitCode != 7 {
				c.Errorf("exit 7: the pod is %s, want Failed with exit code 7", describePod(p))
			}
		},
	},
	{
		Name: "exits/reason", Why: "the reason is what kubectl shows in the place of a phase",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			pod := c.newPod("reason", program.Program{Stay: c.h.Tick})
			if end := c.endOf(c.runToEnd(pod), "main"); end.Reason == "" {
				c.Errorf("a container that ended has no reason, want one such as Completed")
			}
		},
	},
	{
		Name: "exits/times", Why: "durations of Jobs, and the order of events, come from when containers started and ended",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			begin := time.Now()
			pod := c.newPod("times", program.Program{Stay: c.h.Tick})
			end := c.endOf(c.runToEnd(pod), "main")
			const slack = 5 * time.Second // for a clock of another machine, possibly with a precision of seconds
			if end.FinishedAt.Time.Before(end.StartedAt.Time) || end.StartedAt.Time.Before(begin.Add(-slack)) || end.FinishedAt.After(time.Now().Add(slack)) {
				c.Errorf("between %s and now the container ran from %s to %s", begin, end.StartedAt, end.FinishedAt)
			}
		},
	},
	{
		Name: "exits/killed", Why: "a container that was killed did not succeed",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			if c.backend.Kill == nil {
				c.Skipf("the harness cannot kill a container")
			}
			pod := c.newPod("killed", stayingProgram())
			c.startPod(pod)
			if err := c.backend.Kill(pod, "main"); err != nil {
				c.Fatalf("kill the container: %v", err)
			}
			p := c.untilPod(pod, "to end", isTerminal)
			if end := c.endOf(p, "main"); p.Status.Phase != corev1.PodFailed || end.ExitCode == 0 {
				c.Errorf("after a kill the pod is %s, want Failed with an exit code that is not 0", describePod(p))
			}
		},
	},
	{
		Name: "exits/unknown", Why: "an instance that vanished may not have done its work: an invented exit code 0 completes the Job",
		Run: func(c *C) {
			if c.backend.Lose == nil {
				c.Skipf("the harness cannot lose an instance")
			}
			pod := c.newPod("unknown", stayingProgram())
			c.startPod(pod)
			if err := c.backend.Lose(pod); err != nil {
				c.Fatalf("lose the instance: %v", err)
			}
			c.awaitCondition("the loss to be seen", func() (bool, string) {
				p := c.currentPod(c.ctx, pod)
				return p == nil || !isRunning(p), describePod(p)
			})
			if p := c.currentPod(c.ctx, pod); p != nil {
				if p.Status.Phase == corev1.PodSucceeded {
					c.Errorf("a pod whose instance vanished is %s", describePod(p))
				}
				for _, s := range p.Status.ContainerStatuses {
					if s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 {
						c.Errorf("nobody knows the exit code of %s, and it is said to be 0", s.Name)
					}
				}
			}
		},
	},
	{
		Name: "exits/message", Why: "the termination message of a container are where users look first",
		Needs: []capability.Feature{capability.RunToCompletion, capability.TerminationMessages},
		Run: func(c *C) {
			pod := c.newPod("message", program.Program{Message: "out of luck", MessagePath: "/tmp/last", Exit: 1})
			pod.Spec.Containers[0].TerminationMessagePath = "/tmp/last"
			if end := c.endOf(c.runToEnd(pod), "main"); end.Message != "out of luck" {
				c.Errorf("the termination message is %q, want %q", end.Message, "out of luck")
			}
		},
	},
	{
		Name: "exits/ready", Why: "a pod that has ended must get no traffic",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			p := c.runToEnd(c.newPod("unready", program.Program{Stay: c.h.Tick}))
			if isReady(p) || c.statusOf(p, "main").Ready {
				c.Errorf("a pod that has ended is Ready: %s", describePod(p))
			}
		},
	},
}

// conditionStatus returns the status of a condition of a pod.
func conditionStatus(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, k := range p.Status.Conditions {
		if k.Type == kind {
			return k.Status
		}
	}
	return corev1.ConditionUnknown
}

var restarts = []Check{
	{
		Name: "restarts/always", Why: "a Deployment relies on containers that come back, whatever they ended with",
		Run: func(c *C) {
			pod := c.newPod("always", program.Program{Stay: c.h.Tick})
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			p := c.untilRestarted(pod)
			if s := c.statusOf(p, "main"); s.LastTerminationState.Terminated == nil {
				c.Errorf("after a restart lastState is empty: %s", describePod(p))
			}
		},
	},
	{
		Name: "restarts/last-state", Why: "the exit code of the run before is how users find out why a container restarts",
		Run: func(c *C) {
			pod := c.newPod("last", program.Program{Stay: c.h.Tick, Exit: 6})
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			p := c.untilRestarted(pod)
			if last := c.statusOf(p, "main").LastTerminationState.Terminated; last != nil && last.ExitCode != 6 {
				c.Errorf("lastState has exit code %d, want 6", last.ExitCode)
			}
		},
	},
	{
		Name: "restarts/on-failure", Why: "a Job with OnFailure tries again what failed, in its place",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			pod := c.newPod("on-failure", program.Program{Stay: c.h.Tick, Exit: 3})
			pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			c.untilRestarted(pod)
		},
	},
	{
		Name: "restarts/on-failure-succeeds", Why: "what succeeded is not done twice",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			pod := c.newPod("on-failure-0", program.Program{Stay: c.h.Tick})
			pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			if p := c.runToEnd(pod); p.Status.Phase != corev1.PodSucceeded || c.statusOf(p, "main").RestartCount != 0 {
				c.Errorf("exit 0 with OnFailure: the pod is %s, want Succeeded without a restart", describePod(p))
			}
		},
	},
	{
		Name: "restarts/never", Why: "a pod that is never restarted has failed for good, and its Job makes another one",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			if p := c.runToEnd(c.newPod("never", program.Program{Stay: c.h.Tick, Exit: 2})); c.statusOf(p, "main").RestartCount != 0 {
				c.Errorf("with restartPolicy Never the pod is %s", describePod(p))
			}
		},
	},
	{
		Name: "restarts/killed", Why: "a container that crashed comes back without anybody's help",
		Run: func(c *C) {
			if c.backend.Kill == nil {
				c.Skipf("the harness cannot kill a container")
			}
			pod := c.newPod("crash", stayingProgram())
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			c.startPod(pod)
			if err := c.backend.Kill(pod, "main"); err != nil {
				c.Fatalf("kill the container: %v", err)
			}
			c.untilPod(pod, "to run again", func(p *corev1.Pod) bool { return isRunning(p) && c.statusOf(p, "main").RestartCount > 0 })
		},
	},
	{
		Name: "restarts/count-holds", Why: "alerts on restarts count the difference: a number that falls hides crashes, or cries wolf",
		Run: func(c *C) {
			pod := c.newPod("count", program.Program{Stay: c.h.Tick, Exit: 1})
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			before := c.statusOf(c.untilRestarted(pod), "main").RestartCount
			c.reopenProvider()
			p := c.untilPod(pod, "to be found again", func(*corev1.Pod) bool { return true })
			if after := c.statusOf(p, "main").RestartCount; after < before {
				c.Errorf("the restart count was %d and is %d after a restart of the node, want no less", before, after)
			}
		},
	},
}

// untilRestarted makes a pod and waits for the first restart of its container main.
func (c *C) untilRestarted(pod *corev1.Pod) *corev1.Pod {
	c.createPod(pod)
	return c.untilPod(pod, "to restart", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && c.statusOf(p, "main").RestartCount > 0
	})
}
