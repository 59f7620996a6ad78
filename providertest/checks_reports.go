// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// needsReports skips checks of reports for polled providers.
func (c *C) needsReports() {
	if _, ok := c.openProvider().provider.(node.PodNotifier); !ok {
		c.Skipf("the provider does not report by itself: it has no NotifyPods")
	}
}

// phaseRank returns the order of a phase in the life of a pod.
func phaseRank(p corev1.PodPhase) int {
	switch p {
	case corev1.PodRunning:
		return 1
	case corev1.PodSucceeded, corev1.PodFailed:
		return 2
	}
	return 0
}

var reports = []Check{
	{
		Name: "reports/prompt", Why: "without a report the node learns of an end only when it asks again, minutes later",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			c.needsReports()
			pod := c.newPod("prompt", program.Program{Stay: c.h.Tick})
			c.createPod(pod)
			c.awaitCondition("a report of the end", func() (bool, string) {
				all := c.openProvider().reportsOf(pod.UID)
				return len(all) > 0 && isTerminal(all[len(all)-1]), "the reports end before it"
			})
		},
	},
	{
		Name: "reports/order", Why: "a status that goes back makes controllers do again what they did, and dashboards flap",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			c.needsReports()
			pod := c.newPod("order", program.Program{Stay: 2 * c.h.Tick})
			c.runToEnd(pod)
			c.untilReported(pod)
			last, name := 0, corev1.PodPhase("")
			for i, p := range c.openProvider().reportsOf(pod.UID) {
				if r := phaseRank(p.Status.Phase); r < last {
					c.Errorf("report %d says %s after %s", i, p.Status.Phase, name)
				} else {
					last, name = r, p.Status.Phase
				}
			}
		},
	},
	{
		Name: "reports/final", Why: "a pod that ended stays ended: a Job that was complete must not run again",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			c.needsReports()
			pod := c.newPod("final", program.Program{Stay: c.h.Tick, Exit: 3})
			c.runToEnd(pod)
			c.untilReported(pod)
			c.removePod(pod, 0)
			phase := corev1.PodPhase("")
			for i, p := range c.openProvider().reportsOf(pod.UID) {
				if phase != "" && p.Status.Phase != phase {
					c.Errorf("report %d says %s after %s", i, p.Status.Phase, phase)
				}
				if isTerminal(p) {
					phase = p.Status.Phase
				}
			}
		},
	},
	{
		Name: "reports/restarts", Why: "the number of restarts of a container only grows",
		Run: func(c *C) {
			c.needsReports()
			pod := c.newPod("restarts", program.Program{Stay: c.h.Tick})
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			c.createPod(pod)
			count := func(p *corev1.Pod) (n int32) {
				for _, s := range p.Status.ContainerStatuses {
					n += s.RestartCount
				}
				return n
			}
			c.awaitCondition("reports of two restarts", func() (bool, string) {
				most, last := int32(0), int32(0)
				for i, p := range c.openProvider().reportsOf(pod.UID) {
					if last = count(p); last < most {
						c.Fatalf("report %d says %d restarts after %d", i, last, most)
					}
					most = last
				}
				return most >= 2, "there are fewer"
			})
		},
	},
	{
		Name: "reports/whole", Why: "a report is of a pod, and without its UID it may be believed of the next one of its name",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			c.needsReports()
			pod := c.newPod("whole", program.Program{Stay: c.h.Tick})
			c.runToEnd(pod)
			c.untilReported(pod)
			s := c.openProvider()
			s.mu.Lock()
			defer s.mu.Unlock()
			for i, p := range s.reports {
				if p.Namespace == c.ns && p.Name == pod.Name && (p.UID != pod.UID || len(p.Spec.Containers) != 1) {
					c.Errorf("report %d of %s has the UID %q and %d containers, want %s and 1", i, p.Name, p.UID, len(p.Spec.Containers), pod.UID)
				}
			}
		},
	},
	{
		Name: "reports/no-lock", Why: "a report that is sent while a lock is held ends in a deadlock when its receiver asks back",
		Run: func(c *C) {
			c.needsReports()
			s := c.openProvider()
			asked := make(chan struct{}, 1)
			s.mu.Lock()
			s.calls = func(p *corev1.Pod) {
				if p.Namespace != c.ns {
					return
				}
				done := make(chan struct{})
				go func() { // a provider that holds a lock does not return
					defer close(done)
					_, _ = s.provider.GetPod(c.ctx, p.Namespace, p.Name)
				}()
				timer := time.NewTimer(c.h.Patience / 4)
				defer timer.Stop()
				select {
				case <-done:
					select {
					case asked <- struct{}{}:
					default:
					}
				case <-timer.C:
					c.Errorf("GetPod does not answer while a report is delivered")
				}
			}
			s.mu.Unlock()
			c.createPod(c.newPod("no-lock", stayingProgram()))
			c.awaitCondition("a report whose receiver asked back", func() (bool, string) {
				select {
				case <-asked:
					return true, ""
				default:
					return false, "there is none"
				}
			})
		},
	},
	{
		Name: "reports/after-restart", Why: "what changed while the node was away is told when it is back",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			c.needsReports()
			pod := c.newPod("back", program.Program{Stay: 2 * c.h.Tick})
			c.startPod(pod)
			c.reopenProvider()
			c.untilReported(pod)
		},
	},
	{
		Name: "reports/own", Why: "the node keeps a report: one that changes later is a data race",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			c.needsReports()
			s := c.openProvider()
			var kept, copies []*corev1.Pod
			s.mu.Lock()
			s.calls = func(p *corev1.Pod) {
				s.mu.Lock()
				defer s.mu.Unlock()
				kept, copies = append(kept, p), append(copies, p.DeepCopy())
			}
			s.mu.Unlock()
			pod := c.newPod("own-report", program.Program{Stay: c.h.Tick})
			c.runToEnd(pod)
			c.untilReported(pod)
			s.mu.Lock()
			defer s.mu.Unlock()
			for i := range kept {
				if a, b := describePod(kept[i]), describePod(copies[i]); a != b {
					c.Errorf("report %d was %q and is %q now", i, b, a)
				}
			}
		},
	},
}

// heapInUse returns the memory in use. Pools keep their objects through one collection.
func heapInUse() uint64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// untilReported waits for the report of a pod's end.
func (c *C) untilReported(pod *corev1.Pod) {
	c.awaitCondition("a report of the end", func() (bool, string) {
		all := c.openProvider().reportsOf(pod.UID)
		return len(all) > 0 && isTerminal(all[len(all)-1]), "the reports end before it"
	})
}

func (c *C) requirePing() interface{ Ping(context.Context) error } {
	p, ok := c.openProvider().provider.(interface{ Ping(context.Context) error })
	if !ok {
		c.Skipf("the provider has no Ping")
	}
	return p
}

var pings = []Check{
	{
		Name: "ping/well", Why: "the node is Ready while its backend can run pods",
		Run: func(c *C) {
			if err := c.requirePing().Ping(c.ctx); err != nil {
				c.Errorf("Ping of a backend that is well: %v", err)
			}
		},
	},
	{
		Name: "ping/outage", Why: "the scheduler must not send pods to a backend that cannot run them",
		Run: func(c *C) {
			p := c.requirePing()
			c.inOutage("fail", c.backend.Outage, func(*corev1.Pod) {
				c.awaitCondition("Ping to fail", func() (bool, string) { return p.Ping(c.ctx) != nil, "it says that all is well" })
			})
			c.awaitCondition("Ping to succeed again", func() (bool, string) {
				err := p.Ping(c.ctx)
				return err == nil, errorText(err)
			})
		},
	},
}

var resources = []Check{
	{
		Name: "resources/goroutines", Why: "a goroutine that is left for each pod ends the node after a month", Alone: true,
		Run: func(c *C) {
			c.openProvider()
			lives := func(round string) {
				var all []*corev1.Pod
				for i := range c.h.Many {
					pod := c.newPod(round+string(rune('a'+i%26))+string(rune('a'+i/26)), stayingProgram())
					c.createPod(pod)
					all = append(all, pod)
				}
				for _, pod := range all {
					c.untilPod(pod, "to run", isRunning)
					c.removePod(pod, 0)
					c.objects.remove(pod.UID)
				}
			}
			lives("warm-")
			before := runtime.NumGoroutine()
			lives("then-")
			c.awaitCondition("the goroutines of the pods to end", func() (bool, string) {
				after := runtime.NumGoroutine()
				return after <= before+mostIdle(c.h.Many), "there were " + strconv.Itoa(before) + ", and after the pods are gone there are " + strconv.Itoa(after)
			})
		},
	},
	{
		Name: "resources/close", Why: "a node ends when it is asked to, and leaves nothing running", Alone: true,
		Run: func(c *C) {
			before := runtime.NumGoroutine()
			for range c.h.Many {
				c.openProvider()
				c.closeSession()
			}
			c.awaitCondition("the goroutines of the providers to end", func() (bool, string) {
				after := runtime.NumGoroutine()
				return after <= before+mostIdle(c.h.Many), "there were " + strconv.Itoa(before) + ", and after the providers have ended there are " + strconv.Itoa(after)
			})
		},
	},
	{
		Name: "resources/memory", Why: "what is kept of pods that are gone adds up", Alone: true,
		Run: func(c *C) {
			c.openProvider()
			lives := func(round string, n int) uint64 {
				for i := range n {
					pod := c.newPod(round+strconv.Itoa(i), stayingProgram())
					c.startPod(pod)
					c.removePod(pod, 0)
					c.objects.remove(pod.UID)
				}
				s := c.openProvider()
				s.mu.Lock()
				s.reports = nil
				s.mu.Unlock()
				return heapInUse()
			}
			before := lives("warm-", c.h.Many)
			lives("then-", c.h.Many)
			// Goroutines need a moment to end. Each check runs the garbage collector, so there are few checks.
			c.untilEvery(max(c.h.Every, c.h.Patience/100), "the memory of the pods to be given up", func() (bool, string) {
				grown := int64(heapInUse()) - int64(before)
				return grown <= 64<<10*int64(c.h.Many), fmt.Sprintf("after %d pods that are gone the heap has %d bytes more, want less than 64 KiB a pod", c.h.Many, grown)
			})
		},
	},
}

// mostIdle returns the allowed number of goroutines after n pods or providers. A leak would leave at least n. A client and a server in this
// process keep some connections for the next request, with three goroutines each.
func mostIdle(n int) int { return n * 3 / 4 }
