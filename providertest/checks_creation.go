// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

var creation = []Check{
	{
		Name: "creation/runs", Why: "a pod that never shows as running gets no traffic, and its controller waits for ever",
		Run: func(c *C) {
			pod := c.startPod(c.newPod("runs", stayingProgram()))
			s := c.statusOf(pod, "main")
			if s.ContainerID == "" || s.State.Running.StartedAt.IsZero() {
				c.Errorf("a container that runs has the ID %q and started at %s, want both", s.ContainerID, s.State.Running.StartedAt)
			}
			if s.Name != "main" || s.RestartCount != 0 {
				c.Errorf("its status is that of %q with %d restarts, want main with 0", s.Name, s.RestartCount)
			}
		},
	},
	{
		Name: "creation/shown", Why: "the node finds pods again by their names and UIDs, and decides by labels whose they are",
		Run: func(c *C) {
			made := c.newPod("shown", stayingProgram())
			c.startPod(made)
			got, err := c.openProvider().provider.GetPod(c.ctx, c.ns, made.Name)
			if err != nil || got == nil {
				c.Fatalf("GetPod returns %v, %v", got, err)
			}
			if got.Namespace != c.ns || got.Name != made.Name || got.UID != made.UID {
				c.Errorf("GetPod returns %s/%s with UID %s, want %s/%s with %s", got.Namespace, got.Name, got.UID, c.ns, made.Name, made.UID)
			}
		},
	},
	{
		Name: "creation/status", Why: "kubectl and the node ask for the status alone; one that differs from the pod's own flips back and forth",
		Run: func(c *C) {
			made := c.newPod("status", stayingProgram())
			c.startPod(made)
			got, err := c.openProvider().provider.GetPodStatus(c.ctx, c.ns, made.Name)
			if err != nil || got == nil {
				c.Fatalf("GetPodStatus of a pod that runs returns %v, %v", got, err)
			}
			if got.Phase != corev1.PodRunning {
				c.Errorf("GetPodStatus says %s, want Running as GetPod does", got.Phase)
			}
		},
	},
	{
		Name: "creation/twice", Why: "after a lost answer CreatePod is called again; a second instance costs money and does the work twice",
		Run: func(c *C) {
			made := c.newPod("twice", stayingProgram())
			before := c.startPod(made)
			if err := c.tryCreate(c.ctx, made); err != nil {
				c.Logf("the second CreatePod: %v", err)
			}
			c.onlyOne(made)
			after := c.untilPod(made, "to run on", isRunning)
			if a, b := c.statusOf(before, "main"), c.statusOf(after, "main"); a.ContainerID != b.ContainerID || a.RestartCount != b.RestartCount {
				c.Errorf("the container was %s with %d restarts and is %s with %d, want the same", a.ContainerID, a.RestartCount, b.ContainerID, b.RestartCount)
			}
		},
	},
	{
		Name: "creation/answer-lost", Why: "a create whose answer is lost succeeded; the next try must find the instance instead of making another one",
		Run: func(c *C) {
			if c.backend.LoseAnswer == nil || c.backend.Instances == nil {
				c.Skipf("the harness cannot lose an answer and count instances")
			}
			c.openProvider()
			made := c.newPod("lost", stayingProgram())
			c.backend.LoseAnswer()
			c.objects.add(made)
			err := c.tryCreate(c.ctx, made)
			for range 3 {
				if err == nil {
					break
				}
				err = c.tryCreate(c.ctx, made)
			}
			if err != nil {
				c.Fatalf("CreatePod still fails after the lost answer: %v", err)
			}
			c.untilPod(made, "to run", isRunning)
			c.onlyOne(made)
		},
	},
	{
		Name: "creation/many", Why: "a rollout makes many pods at once; none may be forgotten or mixed up with another",
		Run: func(c *C) {
			c.openProvider()
			var all []*corev1.Pod
			for i := range c.h.Many {
				pod := c.newPod(fmt.Sprintf("many-%d", i), stayingProgram())
				c.objects.add(pod)
				all = append(all, pod)
			}
			var wait sync.WaitGroup
			for _, pod := range all {
				wait.Go(func() {
					if err := c.tryCreate(c.ctx, pod); err != nil {
						c.Errorf("CreatePod of %s: %v", pod.Name, err)
					}
				})
			}
			wait.Wait()
			c.awaitList(all...)
		},
	},
	{
		Name: "creation/init-order", Why: "init containers prepare what the others need; they run one by one, and before them",
		Needs: []capability.Feature{capability.RunToCompletion, capability.InitContainers},
		Run: func(c *C) {
			pod := c.newPod("init", program.Program{Stay: c.h.Tick})
			for _, name := range []string{"first", "second"} {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, c.newContainer(pod, name, program.Program{Stay: c.h.Tick}))
			}
			p := c.runToEnd(pod)
			first, second, main := c.endOf(p, "first"), c.endOf(p, "second"), c.endOf(p, "main")
			if second.StartedAt.Time.Before(first.FinishedAt.Truncate(c.h.Tick)) || main.StartedAt.Time.Before(second.FinishedAt.Truncate(c.h.Tick)) {
				c.Errorf("first ended %s, second ran from %s to %s, main started %s; want one after the other",
					first.FinishedAt, second.StartedAt, second.FinishedAt, main.StartedAt)
			}
			if p.Status.Phase != corev1.PodSucceeded {
				c.Errorf("the pod is %s", describePod(p))
			}
		},
	},
	{
		Name: "creation/init-fails", Why: "a pod whose preparation failed must not serve, and is Failed if it is never restarted",
		Needs: []capability.Feature{capability.RunToCompletion, capability.InitContainers},
		Run: func(c *C) {
			pod := c.newPod("init-fails", stayingProgram())
			pod.Spec.InitContainers = []corev1.Container{c.newContainer(pod, "init", program.Program{Exit: 4})}
			p := c.runToEnd(pod)
			if p.Status.Phase != corev1.PodFailed || c.endOf(p, "init").ExitCode != 4 {
				c.Errorf("the pod is %s; want Failed with exit code 4 of init", describePod(p))
			}
			for _, s := range p.Status.ContainerStatuses {
				if s.State.Running != nil || s.ContainerID != "" {
					c.Errorf("container %s started after the init container failed: %s", s.Name, describePod(p))
				}
			}
		},
	},
	{
		Name: "creation/sidecar", Why: "a sidecar runs beside the others and does not keep a Job from its end",
		Needs: []capability.Feature{capability.RunToCompletion, capability.Sidecars},
		Run: func(c *C) {
			pod := c.newPod("sidecar", program.Program{Stay: 2 * c.h.Tick})
			k := c.newContainer(pod, "sidecar", stayingProgram())
			always := corev1.ContainerRestartPolicyAlways
			k.RestartPolicy = &always
			pod.Spec.InitContainers = []corev1.Container{k}
			c.createPod(pod)
			both := c.untilPod(pod, "to run with its sidecar", isRunning)
			if c.statusOf(both, "sidecar").State.Running == nil {
				c.Errorf("main runs without its sidecar: %s", describePod(both))
			}
			if p := c.untilPod(pod, "to end", isTerminal); p.Status.Phase != corev1.PodSucceeded {
				c.Errorf("main ended with 0, and the pod is %s; want Succeeded", describePod(p))
			}
		},
	},
}

// onlyOne checks the backend for a second instance of a pod.
func (c *C) onlyOne(pod *corev1.Pod) {
	if c.backend.Instances == nil {
		return
	}
	if n, err := c.backend.Instances(pod); err != nil || n != 1 {
		c.Errorf("the backend runs %d instances of pod %s (%v), want 1", n, pod.Name, err)
	}
}

// awaitList waits until the list has exactly these pods of the check, each once.
func (c *C) awaitList(pods ...*corev1.Pod) {
	c.awaitCondition(fmt.Sprintf("GetPods to have the %d pods once each", len(pods)), func() (bool, string) {
		list, err := c.openProvider().provider.GetPods(c.ctx)
		if err != nil {
			return false, err.Error()
		}
		got := map[string]int{}
		n := 0
		for _, p := range list {
			if p.Namespace == c.ns {
				got[p.Name+" "+string(p.UID)]++
				n++
			}
		}
		for _, p := range pods {
			if got[p.Name+" "+string(p.UID)] != 1 {
				return false, fmt.Sprintf("pod %s is in it %d times, of %d", p.Name, got[p.Name+" "+string(p.UID)], n)
			}
		}
		return n == len(pods), fmt.Sprintf("it has %d", n)
	})
}
