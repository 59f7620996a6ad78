// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// inOutage makes a running pod and makes the backend fail while f runs.
func (c *C) inOutage(what string, fault func(on bool), f func(pod *corev1.Pod)) {
	if fault == nil {
		c.Skipf("the harness cannot let the backend %s", what)
	}
	pod := c.newPod("runs", stayingProgram())
	c.startPod(pod)
	fault(true)
	c.addCleanup(func() { fault(false) })
	f(pod)
	fault(false)
}

var lists = []Check{
	{
		Name: "lists/outage", Why: "an error that looks like an empty list makes the node believe that every pod is lost",
		Run: func(c *C) {
			c.inOutage("fail", c.backend.Outage, func(pod *corev1.Pod) {
				list, err := c.openProvider().provider.GetPods(c.ctx)
				if err == nil && !hasPod(list, pod) {
					c.Errorf("while the backend does not answer GetPods says that there are %d pods, without an error", len(list))
				}
			})
		},
	},
	{
		Name: "lists/outage-error", Why: "a list of before that is taken for one of now hides a backend that nobody reaches, and the node acts on what is no more true",
		Run: func(c *C) {
			c.inOutage("fail", c.backend.Outage, func(*corev1.Pod) {
				c.awaitCondition("GetPods to fail while the backend does not answer", func() (bool, string) {
					list, err := c.openProvider().provider.GetPods(c.ctx)
					return err != nil, fmt.Sprintf("it says that there are %d pods", len(list))
				})
			})
		},
	},
	{
		Name: "lists/get-outage", Why: "a pod that cannot be asked for is not a pod that does not exist",
		Run: func(c *C) {
			c.inOutage("fail", c.backend.Outage, func(pod *corev1.Pod) {
				got, err := c.openProvider().provider.GetPod(c.ctx, c.ns, pod.Name)
				if got == nil && err == nil || errdefs.IsNotFound(err) {
					c.Errorf("while the backend does not answer GetPod says %v, %v: that the pod does not exist", got, err)
				}
			})
		},
	},
	{
		Name: "lists/status-outage", Why: "what holds for GetPod holds for GetPodStatus",
		Run: func(c *C) {
			c.inOutage("fail", c.backend.Outage, func(pod *corev1.Pod) {
				got, err := c.openProvider().provider.GetPodStatus(c.ctx, c.ns, pod.Name)
				if got == nil && err == nil || errdefs.IsNotFound(err) {
					c.Errorf("while the backend does not answer GetPodStatus says %v, %v: that the pod does not exist", got, err)
				}
			})
		},
	},
	{
		Name: "lists/create-outage", Why: "invalid-input ends a pod of a Job for good, although the backend is well a minute later",
		Run: func(c *C) {
			c.inOutage("fail", c.backend.Outage, func(*corev1.Pod) { c.createFails() })
		},
	},
	{
		Name: "lists/create-throttled", Why: "a backend that is asked too often costs time, and no pod",
		Run: func(c *C) {
			c.inOutage("throttle", c.backend.Throttle, func(*corev1.Pod) { c.createFails() })
		},
	},
	{
		Name: "lists/delete-outage", Why: "a DeletePod that nobody heard did not stop the pod",
		Run: func(c *C) {
			c.inOutage("fail", c.backend.Outage, func(pod *corev1.Pod) {
				if err := c.tryDelete(pod, 0); err == nil && c.isGone(c.ctx, pod) || errdefs.IsNotFound(err) {
					c.Errorf("while the backend does not answer DeletePod says %v, want an error that is not of the kind not-found", err)
				}
			})
		},
	},
	{
		Name: "lists/after-outage", Why: "an outage costs no pod",
		Run: func(c *C) {
			var made *corev1.Pod
			c.inOutage("fail", c.backend.Outage, func(pod *corev1.Pod) {
				made = pod
				_, _ = c.openProvider().provider.GetPods(c.ctx) // another check judges the result
			})
			c.untilPod(made, "to run on", isRunning)
			c.onlyOne(made)
			c.awaitList(made)
		},
	},
	{
		Name: "lists/stale", Why: "many backends list what was true a moment ago: a pod that was just made is then taken for lost, or made twice",
		Run: func(c *C) {
			if c.backend.Stale == nil {
				c.Skipf("the harness cannot let the backend list what was true before")
			}
			old, made := c.newPod("old", stayingProgram()), c.newPod("new", stayingProgram())
			c.startPod(old)
			c.backend.Stale(true)
			c.addCleanup(func() { c.backend.Stale(false) })
			c.startPod(made)
			if list, err := c.openProvider().provider.GetPods(c.ctx); err == nil && !(hasPod(list, old) && hasPod(list, made)) {
				c.Errorf("the backend's list is from before the pod was made, and GetPods says without an error that it does not exist")
			}
			if err := c.tryCreate(c.ctx, made); err != nil {
				c.Logf("the second CreatePod: %v", err)
			}
			c.onlyOne(made)
			c.untilPod(made, "to run on", isRunning)
			c.backend.Stale(false)
			c.awaitList(old, made)
			for i, p := range c.openProvider().reportsOf(made.UID) {
				if isTerminal(p) {
					c.Errorf("report %d of a pod that runs says that it has ended: %s", i, describePod(p))
				}
			}
		},
	},
	{
		Name: "lists/absent", Why: "only the kind not-found, or nil, says that a pod does not exist; any other error is tried again for ever",
		Run: func(c *C) {
			p := c.openProvider().provider
			if got, err := p.GetPod(c.ctx, c.ns, "absent"); got != nil || err != nil && !errdefs.IsNotFound(err) {
				c.Errorf("GetPod of a pod that is not there: got %v, %v, want nil or an error of the kind not-found", got, err)
			}
			if got, err := p.GetPodStatus(c.ctx, c.ns, "absent"); got != nil || err != nil && !errdefs.IsNotFound(err) {
				c.Errorf("GetPodStatus of a pod that is not there: got %v, %v, want nil or an error of the kind not-found", got, err)
			}
		},
	},
	{
		Name: "lists/lost", Why: "a pod that the backend lost is replaced only when the provider stops showing it as running",
		Run: func(c *C) {
			if c.backend.Lose == nil {
				c.Skipf("the harness cannot lose an instance")
			}
			pod := c.newPod("lost", stayingProgram())
			c.startPod(pod)
			if err := c.backend.Lose(pod); err != nil {
				c.Fatalf("lose the instance: %v", err)
			}
			c.awaitCondition("the loss to be seen", func() (bool, string) {
				list, err := c.openProvider().provider.GetPods(c.ctx)
				if err != nil {
					return false, err.Error()
				}
				for _, p := range list {
					if p.UID == pod.UID && isRunning(p) {
						return false, describePod(p)
					}
				}
				return true, ""
			})
		},
	},
	{
		Name: "lists/private", Why: "a pod that was handed out is compared later: one that changes under its reader is a data race",
		Run: func(c *C) {
			pod := c.newPod("private", stayingProgram())
			c.startPod(pod)
			list, err := c.openProvider().provider.GetPods(c.ctx)
			if err != nil || !hasPod(list, pod) {
				c.Fatalf("GetPods: got %d pods, %v", len(list), err)
			}
			var copies []*corev1.Pod
			for _, p := range list {
				copies = append(copies, p.DeepCopy())
			}
			c.removePod(pod, 0)
			for i := range list {
				if !reflect.DeepEqual(list[i], copies[i]) {
					c.Errorf("pod %s of the list changed after it was handed out: %s, before %s", list[i].Name, describePod(list[i]), describePod(copies[i]))
				}
			}
		},
	},
	{
		Name: "lists/statuses", Why: "after a restart the node takes the status from the list; pods without one start from nothing",
		Run: func(c *C) {
			pod := c.newPod("statuses", stayingProgram())
			c.startPod(pod)
			list, err := c.openProvider().provider.GetPods(c.ctx)
			if err != nil {
				c.Fatalf("GetPods: %v", err)
			}
			for _, p := range list {
				if p.UID == pod.UID && !isRunning(p) {
					c.Errorf("the pod runs, and in the list it is %s", describePod(p))
				}
			}
		},
	},
	{
		Name: "lists/update", Why: "labels that users change are changed at the backend, and the pod runs on",
		Run: func(c *C) {
			pod := c.newPod("update", stayingProgram())
			before := c.statusOf(c.startPod(pod), "main")
			changed := pod.DeepCopy()
			changed.Labels["app"] = "changed"
			changed.Status = c.currentPod(c.ctx, pod).Status
			if err := c.openProvider().provider.UpdatePod(c.ctx, changed); err != nil {
				c.Fatalf("UpdatePod with another label: %v", err)
			}
			p := c.untilPod(pod, "to run on", isRunning)
			if after := c.statusOf(p, "main"); after.ContainerID != before.ContainerID {
				c.Errorf("a change of a label replaced container %s by %s", before.ContainerID, after.ContainerID)
			}
		},
	},
}

// createFails checks that CreatePod fails at an unhealthy backend.
func (c *C) createFails() {
	pod := c.newPod("unwell", program.Program{Stay: program.Forever})
	c.objects.add(pod)
	err := c.tryCreate(c.ctx, pod)
	if errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err) {
		c.Errorf("CreatePod at a backend that is not well: got %v, which is of a kind that says that the pod is to blame", err)
	}
	if err == nil && c.countInstances(pod) == 0 && c.currentPod(c.ctx, pod) == nil {
		c.Errorf("CreatePod at a backend that is not well says that it went well, and nothing shows the pod")
	}
}

func hasPod(list []*corev1.Pod, pod *corev1.Pod) bool {
	for _, p := range list {
		if p.UID == pod.UID {
			return true
		}
	}
	return false
}
