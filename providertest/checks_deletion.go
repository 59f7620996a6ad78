// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

var deletion = []Check{
	{
		Name: "deletion/confirmed", Why: "the pod leaves the API server when the provider says that it has stopped; what runs on then costs money, and nobody sees it",
		Run: func(c *C) {
			pod := c.newPod("confirmed", program.Program{Stay: program.Forever, Deaf: true})
			c.startPod(pod)
			c.removePod(pod, 1)
			c.noneLeft(pod)
		},
	},
	{
		Name: "deletion/grace", Why: "a database that is killed at once loses what it had not written",
		Run: func(c *C) {
			pod := c.newPod("grace", program.Program{Print: []string{"begun"}, Stay: program.Forever, Deaf: true})
			c.startProgram(pod)
			begin := time.Now()
			c.removePod(pod, 3)
			if took := time.Since(begin); took < 2*time.Second {
				c.Errorf("a container that takes its time was given %s of 3 s", took)
			}
		},
	},
	{
		Name: "deletion/grace-ends", Why: "a container that does not listen must not keep its node from draining",
		Run: func(c *C) {
			pod := c.newPod("grace-ends", program.Program{Stay: program.Forever, Deaf: true})
			c.startPod(pod)
			begin := time.Now()
			c.removePod(pod, 1)
			if took := time.Since(begin); took > 1*time.Second+c.h.Patience/2 {
				c.Errorf("a grace period of 1 s took %s", took)
			}
		},
	},
	{
		Name: "deletion/early", Why: "a pod that stops when it is asked to needs no grace period; waiting for all of it makes rollouts slow",
		Run: func(c *C) {
			pod := c.newPod("early", program.Program{Print: []string{"begun"}, Stay: program.Forever})
			c.startProgram(pod)
			begin := time.Now()
			c.removePod(pod, int64((2*c.h.Patience).Seconds())+1)
			if took := time.Since(begin); took > c.h.Patience {
				c.Errorf("a pod that stops at once took %s", took)
			}
		},
	},
	{
		Name: "deletion/at-once", Why: "kubectl delete --force means now",
		Run: func(c *C) {
			pod := c.newPod("at-once", program.Program{Stay: program.Forever, Deaf: true})
			c.startPod(pod)
			begin := time.Now()
			c.removePod(pod, 0)
			if took := time.Since(begin); took > c.h.Patience/4 {
				c.Errorf("with a grace period of 0 the pod took %s to stop", took)
			}
			c.noneLeft(pod)
		},
	},
	{
		Name: "deletion/shorter", Why: "a second, shorter request to stop counts: it is how users end a pod that hangs",
		Run: func(c *C) {
			pod := c.newPod("shorter", program.Program{Stay: program.Forever, Deaf: true})
			c.startPod(pod)
			if err := c.tryDelete(pod, int64((4*c.h.Patience).Seconds())+60); err != nil {
				c.Fatalf("DeletePod: %v", err)
			}
			c.removePod(pod, 0)
			c.noneLeft(pod)
		},
	},
	{
		Name: "deletion/absent", Why: "a pod that the backend does not have counts as stopped only if the error says so by its kind",
		Run: func(c *C) {
			if err := c.tryDelete(c.newPod("absent", stayingProgram()), 0); err != nil && !errdefs.IsNotFound(err) {
				c.Errorf("DeletePod of a pod that is not there: got %v, which is not of the kind not-found", err)
			}
		},
	},
	{
		Name: "deletion/again", Why: "DeletePod is called until the pod has stopped",
		Run: func(c *C) {
			pod := c.newPod("again", stayingProgram())
			c.startPod(pod)
			for range 3 {
				if err := c.tryDelete(pod, 1); err != nil && !errdefs.IsNotFound(err) {
					c.Errorf("DeletePod again: %v", err)
				}
			}
			c.untilGone(pod)
		},
	},
	{
		Name: "deletion/ended", Why: "what has ended is deleted too, or the backend fills up with it",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			pod := c.newPod("ended", program.Program{Stay: c.h.Tick})
			c.runToEnd(pod)
			c.removePod(pod, 0)
		},
	},
	{
		Name: "deletion/others", Why: "a delete hits one pod",
		Run: func(c *C) {
			one, other := c.newPod("one", stayingProgram()), c.newPod("one-other", stayingProgram())
			c.startPod(one)
			c.startPod(other)
			c.removePod(one, 0)
			if p := c.currentPod(c.ctx, other); p == nil || !isRunning(p) {
				c.Errorf("after the other pod was deleted, this one is: %s", describePod(p))
			}
		},
	},
	{
		Name: "deletion/told", Why: "exit codes of a pod that was deleted arrive with its last report; without it the pod shows containers that run",
		Run: func(c *C) {
			c.needsReports()
			pod := c.newPod("told", stayingProgram())
			c.startPod(pod)
			c.removePod(pod, 5)
			c.untilReported(pod)
			all := c.openProvider().reportsOf(pod.UID)
			last := all[len(all)-1]
			for _, s := range last.Status.ContainerStatuses {
				if s.State.Terminated == nil {
					c.Errorf("the last report says: %s", describePod(last))
				}
			}
		},
	},
	{
		Name: "deletion/exit-code", Why: "a container that stopped cleanly and one that was killed differ by their exit codes",
		Run: func(c *C) {
			c.needsReports()
			for name, want := range map[string]struct {
				p     program.Program
				grace int64 // enough for a program that handles the signal, on a busy machine too
				code  int32
			}{
				"clean":  {program.Program{Print: []string{"begun"}, Stay: program.Forever}, 30, 0},
				"killed": {program.Program{Print: []string{"begun"}, Stay: program.Forever, Deaf: true}, 1, 137},
			} {
				pod := c.newPod(name, want.p)
				c.startProgram(pod)
				c.removePod(pod, want.grace)
				p := c.untilPod(pod, "to be reported as ended", isTerminal)
				if code := c.endOf(p, "main").ExitCode; code != want.code {
					c.Errorf("%s: the exit code is %d, want %d", name, code, want.code)
				}
				if (p.Status.Phase == corev1.PodSucceeded) != (want.code == 0) {
					c.Errorf("%s: the pod is %s", name, describePod(p))
				}
			}
		},
	},
}
