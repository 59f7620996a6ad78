// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

var identity = []Check{
	{
		Name: "identity/same-name", Why: "a StatefulSet makes its next pod under the same name: the status of the old one must not be taken for it",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			old := c.newPod("web-0", program.Program{Stay: c.h.Tick, Exit: 5})
			c.runToEnd(old)
			c.removePod(old, 0)
			next := c.newPod("web-0", stayingProgram())
			p := c.startPod(next)
			if p.UID != next.UID || c.statusOf(p, "main").RestartCount != 0 {
				c.Errorf("the next pod shows as %s %s", p.UID, describePod(p))
			}
			if s := c.statusOf(p, "main"); s.LastTerminationState.Terminated != nil {
				c.Errorf("the next pod shows how the old one ended: %v", s.LastTerminationState.Terminated)
			}
		},
	},
	{
		Name: "identity/delete-other", Why: "a late DeletePod of the old pod must not stop the new one of its name",
		Run: func(c *C) {
			next := c.newPod("web-0", stayingProgram())
			c.startPod(next)
			old := c.newPod("web-0", stayingProgram())
			err := c.tryDelete(old, 0)
			if err != nil && !errdefs.IsNotFound(err) {
				c.Logf("DeletePod of a pod that is not there: %v", err)
			}
			later := c.newPod("later", stayingProgram()) // it lives long enough for a wrong stop to be noticed
			c.startPod(later)
			c.removePod(later, 0)
			p := c.currentPod(c.ctx, next)
			if n := c.countInstances(next); p == nil || !isRunning(p) || n == 0 {
				c.Errorf("DeletePod of another UID hit the pod of the same name: %s, %d instances run", describePod(p), n)
			}
		},
	},
	{
		Name: "identity/restart", Why: "an upgrade of the node must not touch what runs",
		Run: func(c *C) {
			made := c.newPod("restart", stayingProgram())
			before := c.statusOf(c.startPod(made), "main")
			c.reopenProvider()
			p := c.untilPod(made, "to be found again", isRunning)
			if after := c.statusOf(p, "main"); after.ContainerID != before.ContainerID {
				c.Errorf("after a restart the container is %s, want %s as before", after.ContainerID, before.ContainerID)
			}
			c.onlyOne(made)
			c.awaitList(made)
		},
	},
	{
		Name: "identity/restart-ended", Why: "what ended while the node was away is told, with its exit code",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			made := c.newPod("ended", program.Program{Stay: c.h.Tick, Exit: 8})
			c.createPod(made)
			c.untilPod(made, "to begin", func(p *corev1.Pod) bool { return isRunning(p) || isTerminal(p) }) // a busy machine may show its end first
			c.closeSession()
			if c.backend.Instances != nil {
				c.awaitCondition("the end of the instance", func() (bool, string) {
					n, err := c.backend.Instances(made)
					return n == 0 && err == nil, "it runs"
				})
			}
			c.reopenProvider()
			p := c.untilPod(made, "to have ended", isTerminal)
			if code := c.endOf(p, "main").ExitCode; code != 8 {
				c.Errorf("the exit code is %d, want 8", code)
			}
		},
	},
	{
		Name: "identity/restart-create", Why: "after a restart the node may create again what is there",
		Run: func(c *C) {
			made := c.newPod("again", stayingProgram())
			before := c.statusOf(c.startPod(made), "main")
			c.closeSession()
			c.openProvider()
			if err := c.tryCreate(c.ctx, made); err != nil {
				c.Logf("CreatePod after the restart: %v", err)
			}
			c.onlyOne(made)
			p := c.untilPod(made, "to run on", isRunning)
			if after := c.statusOf(p, "main"); after.ContainerID != before.ContainerID {
				c.Errorf("CreatePod after a restart replaced container %s by %s", before.ContainerID, after.ContainerID)
			}
		},
	},
	{
		Name: "identity/restart-deleted", Why: "a pod that was deleted must not come back",
		Run: func(c *C) {
			made := c.newPod("deleted", stayingProgram())
			c.startPod(made)
			c.removePod(made, 0)
			c.objects.remove(made.UID)
			c.reopenProvider()
			p := c.currentPod(c.ctx, made)
			if n := c.countInstances(made); p != nil && p.Status.Phase == corev1.PodRunning || n > 0 {
				c.Errorf("after a restart the deleted pod is back: %s, %d instances run", describePod(p), n)
			}
			if p != nil {
				c.removePod(made, 0) // the node finds and deletes such leftovers
			}
		},
	},
	{
		Name: "identity/restart-in-create", Why: "a node that is killed in the middle of CreatePod does it again; the pod must run once",
		Run: func(c *C) {
			made := c.newPod("middle", stayingProgram())
			c.objects.add(made)
			c.openProvider()
			ctx, cancel := context.WithCancel(c.ctx)
			cancel()
			if err := c.tryCreate(ctx, made); err != nil {
				c.Logf("CreatePod whose caller is gone: %v", err)
			}
			c.closeSession()
			c.openProvider()
			if err := c.tryCreate(c.ctx, made); err != nil {
				c.Fatalf("CreatePod after the restart: %v", err)
			}
			c.untilPod(made, "to run", isRunning)
			c.onlyOne(made)
			c.awaitList(made)
		},
	},
	{
		Name: "identity/restart-in-delete", Why: "a node that is killed while a pod stops goes on to stop it",
		Run: func(c *C) {
			made := c.newPod("stopping", stayingProgram())
			c.startPod(made)
			if err := c.tryDelete(made, -1); err != nil {
				c.Fatalf("DeletePod: %v", err)
			}
			c.reopenProvider()
			c.removePod(made, -1)
			c.noneLeft(made)
		},
	},
}

// countInstances returns the number of running instances of a pod. If the harness cannot count, it is 1 if the
// provider reports the pod as running.
func (c *C) countInstances(pod *corev1.Pod) int {
	if c.backend.Instances == nil {
		if p := c.currentPod(c.ctx, pod); p != nil && isRunning(p) {
			return 1
		}
		return 0
	}
	n, err := c.backend.Instances(pod)
	if err != nil {
		c.Fatalf("count the instances of pod %s: %v", pod.Name, err)
	}
	return n
}

// noneLeft checks that no instance of a pod still runs.
func (c *C) noneLeft(pod *corev1.Pod) {
	if n := c.countInstances(pod); n != 0 {
		c.Errorf("pod %s is said to be gone, and %d instances of it run", pod.Name, n)
	}
}
