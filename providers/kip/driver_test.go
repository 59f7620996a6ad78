// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/delivery"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/ec2"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine/machinetest"
)

// rounds is the number of times that a node is killed.
const rounds = 100

// TestNoOrphans: a test kills a node at a step of its work, starts another node, and hides new machines from lists for a minute. Five minutes later, each
// pod has one machine, no other machine has received the pod, and nothing else runs.
func TestNoOrphans(t *testing.T) {
	authority := newAuthority(t)
	killed := 0
	for round := range rounds {
		random := rand.New(rand.NewPCG(1, uint64(round))) //nolint:gosec // it is to be the same each time
		at, after := 1+random.Int32N(14), random.IntN(2) == 0
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Standby = []Standby{{Type: "small", Count: 1}} })
			w.cloud.Set(func(f *machinetest.Faults) { f.Lag = time.Minute })
			first := w.start(authority, at, after)
			one, two, three := w.pod("one", nil), w.pod("two", nil), w.pod("three", nil)
			first.keep(20 * time.Second)
			_ = w.indexer.Delete(two)
			first.keep(20 * time.Second)
			if first.dead.Load() {
				killed++
			}
			first.stop()
			second := w.start(authority, 0, false)
			second.keep(5 * time.Minute)
			w.wants("killed at step "+string('a'+at-1), 1, one, three)
			w.finish(second)
		})
		if t.Failed() {
			t.Fatalf("round %d: killed at step %d, after its effect: %t", round, at, after)
		}
	}
	t.Logf("%d rounds, killed in %d of them", rounds, killed)
	if killed < rounds*9/10 {
		t.Errorf("the node was killed in %d of %d rounds: there are not that many steps", killed, rounds)
	}
}

// TestMachinesEndWithoutANode: if a node does not come back, only machines with running pods cost money.
func TestMachinesEndWithoutANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Standby = []Standby{{Type: "large", Count: 2}} })
		p := w.start(newAuthority(t), 0, false)
		one, two := w.pod("one", nil), w.pod("two", nil)
		p.keep(4 * time.Minute)
		w.wants("before", 2, one, two)
		w.do(two.UID, func(s *simulated) { s.end(corev1.PodSucceeded) })
		p.stop()
		time.Sleep(40 * time.Minute)
		w.wants("40 minutes later", 0, one)
		w.finish()
	})
}

// TestStandbyGoesToOnePod: two pods want the only standby machine. One pod gets it at once, and the other gets a new machine.
func TestStandbyGoesToOnePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Standby = []Standby{{Type: "small", Count: 1}} })
		p := w.start(newAuthority(t), 0, false)
		p.keep(4 * time.Minute)
		w.wants("before", 1)
		w.mu.Lock()
		w.boots = 30 * time.Second
		w.mu.Unlock()
		w.cloud.Set(func(f *machinetest.Faults) {
			f.Before = func(operation string) {
				if operation == "Tag" {
					time.Sleep(500 * time.Millisecond) // both pods look for a machine in the meantime
				}
			}
		})
		one, two := w.pod("one", nil), w.pod("two", nil)
		done := make(chan error, 2)
		for _, pod := range []*corev1.Pod{one, two} {
			go func() { done <- p.driver.kit.CreatePod(t.Context(), pod.DeepCopy()) }()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("CreatePod: %v", err)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		if a, b := w.status(one).Phase == corev1.PodRunning, w.status(two).Phase == corev1.PodRunning; a == b {
			t.Errorf("1.5 s later pod one runs: %t, pod two runs: %t, want one of them", a, b)
		}
		p.keep(time.Minute)
		w.wants("a minute later", 1, one, two)
		w.finish(p)
	})
}

// TestScarceTypeIsLeftAlone: the driver tries the next type at once, and the scarce type again after three minutes.
func TestScarceTypeIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.cloud.Set(func(f *machinetest.Faults) { f.Scarce = []string{"small"} })
		p := w.start(newAuthority(t), 0, false)
		type of struct{ one, two, three string }
		var got of
		create := func(name string) string {
			pod := w.pod(name, nil)
			p.keep(20 * time.Second)
			for _, m := range w.cloud.Running() {
				if m.ID == w.machinesOf()[pod.UID][0] {
					return m.Type
				}
			}
			return ""
		}
		got.one = create("one")
		w.cloud.Set(func(f *machinetest.Faults) { f.Scarce = nil })
		asked := w.cloud.Requests("Start")
		got.two = create("two")
		if n := w.cloud.Requests("Start") - asked; n != 1 {
			t.Errorf("%d starts for the second pod, want one", n)
		}
		p.keep(3 * time.Minute)
		got.three = create("three")
		if want := (of{"large", "large", "small"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		w.finish(p)
	})
}

// TestBudget: the driver does not exceed the limits of machines and money. A pod shows the limit, and gets its machine when there is room.
func TestBudget(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"maxMachines":     func(c *Config) { c.MaxMachines = 1 },
		"maxPricePerHour": func(c *Config) { c.MaxPricePerHour = new(resource.MustParse("0.15")) },
		"the quota":       func(*Config) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, change)
			if name == "the quota" {
				w.cloud.Set(func(f *machinetest.Faults) { f.Quota = 1 })
			}
			p := w.start(newAuthority(t), 0, false)
			one := w.pod("one", nil)
			p.keep(20 * time.Second)
			two := w.pod("two", nil)
			errs := p.keep(20 * time.Second)
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), name) {
				t.Errorf("%s: errors %v, want one that says so", name, errs)
			}
			w.wants(name, 0, one)
			_ = w.indexer.Delete(one)
			p.keep(2 * time.Minute)
			w.wants(name+", with room", 0, two)
			w.finish(p)
		})
	}
}

// TestStartsWithoutAnAnswerCount: a start without an answer counts for the budget until lists show the result.
func TestStartsWithoutAnAnswerCount(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"maxMachines":     func(c *Config) { c.MaxMachines = 2 },
		"maxPricePerHour": func(c *Config) { c.MaxPricePerHour = new(resource.MustParse("0.25")) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, change)
			p := w.start(newAuthority(t), 0, false)
			w.cloud.Set(func(f *machinetest.Faults) { f.Lag, f.LoseStarts = time.Minute, 2*startTries })
			one, two, three := w.pod("one", nil), w.pod("two", nil), w.pod("three", nil)
			for _, pod := range []*corev1.Pod{one, two} {
				if err := p.driver.kit.CreatePod(t.Context(), pod.DeepCopy()); err == nil || !strings.Contains(err.Error(), "the answer was lost") {
					t.Errorf("%s: %v, want a lost answer", name, err)
				}
			}
			if err := p.driver.kit.CreatePod(t.Context(), three.DeepCopy()); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: the third pod: %v, want a refusal", name, err)
			}
			p.keep(6 * time.Minute)
			w.wants(name, 0, one, two)
			_ = w.indexer.Delete(one)
			p.keep(2 * time.Minute)
			w.wants(name+", with room", 0, two, three)
			w.finish(p)
		})
	}
}

// TestStandbyIsLikeThePodWantsIt: a pod that needs a different machine than the standby machine gets a new machine.
func TestStandbyIsLikeThePodWantsIt(t *testing.T) {
	for key, value := range map[string]string{
		"none": "", annotationLaunch: "spot", annotationPrivate: "true", annotationVolume: "10Gi", annotationGroups: "sg-1", annotationProfile: "reader", annotationType: "large",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(c *Config) {
				c.Standby, c.MaxVolumeGiB, c.SecurityGroups, c.InstanceProfiles = []Standby{{Type: "small", Count: 1}}, 20, []string{"sg-1"}, []string{"reader"}
			})
			p := w.start(newAuthority(t), 0, false)
			p.keep(4 * time.Minute)
			waits := w.cloud.Running()[0].ID
			pod := w.pod("one", func(pod *corev1.Pod) { pod.Annotations = map[string]string{key: value} })
			p.keep(time.Minute)
			w.wants(key, 1, pod)
			if got := w.machinesOf()[pod.UID][0] == waits; got != (key == "none") {
				t.Errorf("%s: the pod has the machine that waited: %t", key, got)
			}
			w.finish(p)
		})
	}
}

// TestScarceSpotLeavesOthersAlone: a type without capacity for spot machines is not scarce for other machines.
func TestScarceSpotLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.cloud.Set(func(f *machinetest.Faults) { f.Scarce = []string{"small"} })
		p := w.start(newAuthority(t), 0, false)
		w.pod("one", func(pod *corev1.Pod) { pod.Annotations = map[string]string{annotationLaunch: "spot"} })
		p.keep(20 * time.Second)
		w.cloud.Set(func(f *machinetest.Faults) { f.Scarce = nil })
		w.pod("two", nil)
		p.keep(20 * time.Second)
		if m := w.cloud.Running(); len(m) != 2 || m[0].Type != "large" || m[1].Type != "small" {
			t.Errorf("machines: %+v, want a large one of spot and a small one", m)
		}
		w.finish(p)
	})
}

// TestStartsAreLimited: in a minute, the node starts only the configured number of machines and the burst.
func TestStartsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.StartsPerMinute = 6 })
		p := w.start(newAuthority(t), 0, false)
		for i := range 30 {
			w.pod(string(rune('a'+i)), nil)
		}
		p.keep(time.Minute)
		if n := len(w.cloud.Running()); n < 6 || n > 8 {
			t.Errorf("%d machines after a minute, want 6 to 8", n)
		}
		w.finish(p)
	})
}

// spotWorld returns a world and a process at EC2.
func spotWorld(t *testing.T, change func(*Config)) (*world, *process) {
	t.Helper()
	w := newWorld(t, func(c *Config) {
		c.QEMU, c.EC2 = nil, &ec2.Config{SubnetID: "subnet-1"}
		if change != nil {
			change(c)
		}
	})
	return w, w.start(newAuthority(t), 0, false)
}

func spot(pod *corev1.Pod) { pod.Annotations = map[string]string{annotationLaunch: "spot"} }

// interrupt makes an agent report the notice of EC2.
func (s *simulated) interrupt() { s.state.Interrupted = "EC2 will terminate it" }

// TestSpotMachineIsTakenAway: the notice stops the pod gracefully within two minutes. The pod fails as Preempted, even if it ended well by then, and the
// machine is removed.
func TestSpotMachineIsTakenAway(t *testing.T) {
	for grace, least := range map[int64]time.Duration{10: 9 * time.Second, 600: 85 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w, p := spotWorld(t, nil)
			pod := w.pod("one", func(pod *corev1.Pod) { spot(pod); pod.Spec.TerminationGracePeriodSeconds = &grace })
			p.keep(20 * time.Second)
			if m := w.cloud.Running(); len(m) != 1 || !m[0].Spot {
				t.Fatalf("machines: %+v, want one of spot", m)
			}
			var cell *simulated
			w.do(pod.UID, func(s *simulated) { cell = s; s.interrupt() })
			if !cell.told.Spot {
				t.Error("the agent does not watch for the notice")
			}
			p.keep(20 * time.Second)
			w.mu.Lock()
			if most := min(time.Duration(grace)*time.Second, notice-usual.end); len(cell.stops) == 0 || cell.stops[0] < least || cell.stops[0] > most {
				t.Errorf("stops with a grace of %v, want %s to %s", cell.stops, least, most)
			}
			w.mu.Unlock()
			if s := w.status(pod); s.Phase != corev1.PodFailed || s.Reason != machine.ReasonPreempted {
				t.Errorf("the pod is %s %s", s.Phase, s.Reason)
			}
			if m := w.cloud.Running(); len(m) != 0 {
				t.Errorf("the machine is left: %+v", m)
			}
			w.finish(p)
		})
	}
}

// TestSpotNoticeBeforeThePod: a machine that gets its notice before its pod never gets the pod. The pod fails as Preempted, and another standby machine
// replaces a waiting one.
func TestSpotNoticeBeforeThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := spotWorld(t, func(c *Config) { c.Standby = []Standby{{Type: "small", Count: 1, Spot: true}} })
		p.keep(4 * time.Minute)
		w.wants("before", 1)
		old := w.cloud.Running()[0].ID
		w.mu.Lock()
		for _, s := range w.cells {
			s.interrupt()
			s.change()
		}
		w.mu.Unlock()
		p.keep(20 * time.Second)
		w.wants("afterwards", 1)
		if now := w.cloud.Running()[0].ID; now == old {
			t.Error("the machine with the notice waits for pods")
		}
		w.cloud.Set(func(f *machinetest.Faults) {
			f.Before = func(operation string) {
				if operation != "Start" {
					return
				}
				w.mu.Lock()
				w.taken = true // from now on, machines boot with a notice
				w.mu.Unlock()
			}
		})
		pod := w.pod("one", func(pod *corev1.Pod) {
			spot(pod)
			pod.Annotations[annotationType] = "large"
		})
		p.keep(20 * time.Second)
		if s := w.status(pod); s.Phase != corev1.PodFailed || s.Reason != machine.ReasonPreempted || w.given[pod.UID] != 0 {
			t.Errorf("the pod is %s %s, and %d machines have got it", s.Phase, s.Reason, w.given[pod.UID])
		}
		if all := w.machinesOf()[pod.UID]; len(all) != 0 {
			t.Errorf("its machine is left: %v", all)
		}
		w.finish(p)
	})
}

// TestSpotNoticeOfOthersIsNotBelieved: a machine that the cloud cannot take away cannot make its pod Preempted. Its agent does not watch for a notice.
func TestSpotNoticeOfOthersIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := spotWorld(t, nil)
		pod := w.pod("one", nil)
		p.keep(20 * time.Second)
		w.do(pod.UID, func(s *simulated) {
			if s.told.Spot {
				t.Error("the agent watches for a notice")
			}
			s.interrupt()
		})
		p.keep(20 * time.Second)
		w.wants("afterwards", 0, pod)
		w.finish(p)
	})
}

// TestMachineTerminatedBehindItsNode: the pod fails, once, with the reason.
func TestMachineTerminatedBehindItsNode(t *testing.T) {
	for reason, want := range map[string]string{"Client.UserInitiatedShutdown": reasonNodeLost, machine.ReasonPreempted: machine.ReasonPreempted} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			p := w.start(newAuthority(t), 0, false)
			pod := w.pod("one", nil)
			p.keep(20 * time.Second)
			w.cloud.Terminate(w.machinesOf()[pod.UID][0], reason)
			p.keep(time.Minute)
			if s := w.status(pod); s.Phase != corev1.PodFailed || s.Reason != want {
				t.Errorf("%s: the pod is %s %s, want Failed %s", reason, s.Phase, s.Reason, want)
			}
			failed := 0
			p.mu.Lock()
			for _, s := range p.told {
				if s.Phase == corev1.PodFailed {
					failed++
				}
			}
			p.mu.Unlock()
			if failed != 1 {
				t.Errorf("%s: told %d times, want once", reason, failed)
			}
			w.finish(p)
		})
	}
}

// TestNovaServerThatIsOffIsDeleted: a machine that ends itself still costs money at Nova. The node deletes the machine, also after its own restart.
func TestNovaServerThatIsOffIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Standby = []Standby{{Type: "large", Count: 1}} })
		w.cloud.Set(func(f *machinetest.Faults) { f.Remains = true })
		authority := newAuthority(t)
		first := w.start(authority, 0, false)
		pod := w.pod("one", func(pod *corev1.Pod) { pod.Annotations = map[string]string{annotationType: "small"} })
		first.keep(4 * time.Minute)
		w.wants("before", 1, pod)
		first.stop()
		for _, m := range w.cloud.Running() {
			w.cloud.Terminate(m.ID, "SHUTOFF")
		}
		w.config.Standby = nil
		second := w.start(authority, 0, false)
		second.keep(time.Minute)
		if left, err := w.cloud.List(t.Context(), nil); err != nil || len(left) != 0 {
			t.Errorf("machines that are off are left: %+v, %v", left, err)
		}
		if s := w.status(pod); s.Phase != corev1.PodFailed || s.Reason != reasonNodeLost {
			t.Errorf("the pod is %s %s", s.Phase, s.Reason)
		}
		w.finish(second)
	})
}

// TestBootThatHangs: the node stops the machine, and the pod fails with the reason.
func TestBootThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.boots = time.Hour
		p := w.start(newAuthority(t), 0, false)
		pod := w.pod("one", nil)
		p.keep(9 * time.Minute)
		if s := w.status(pod); s.Phase != corev1.PodPending {
			t.Errorf("after 9 minutes the pod is %s", s.Phase)
		}
		p.keep(2 * time.Minute)
		if s := w.status(pod); s.Phase != corev1.PodFailed || s.Reason != reasonStart {
			t.Errorf("after 11 minutes the pod is %s %s", s.Phase, s.Reason)
		}
		if n := len(w.cloud.Running()); n != 0 {
			t.Errorf("%d machines run", n)
		}
		w.finish(p)
	})
}

// TestSilentMachineIsGivenUp: the pod keeps its status for a time and then fails, once. The node stops the machine. Other pods keep running.
func TestSilentMachineIsGivenUp(t *testing.T) {
	for _, others := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			p := w.start(newAuthority(t), 0, false)
			pod := w.pod("one", nil)
			var rest []*corev1.Pod
			for i := range others {
				rest = append(rest, w.pod(string(rune('a'+i)), nil))
			}
			p.keep(20 * time.Second)
			w.do(pod.UID, func(s *simulated) { s.silent = true })
			asked := false
			w.cloud.Set(func(f *machinetest.Faults) {
				f.Before = func(operation string) {
					if operation == "Stop" && !asked { // the machine runs until then
						asked = true
						time.Sleep(10 * time.Second)
						if s := w.status(pod); s.Phase != corev1.PodRunning {
							t.Errorf("before the machine has ended the pod is %s", s.Phase)
						}
					}
				}
			})
			p.keep(14 * time.Minute)
			w.wants("after 14 minutes", 0, append(rest, pod)...)
			p.keep(2 * time.Minute)
			if s := w.status(pod); s.Phase != corev1.PodFailed || s.Reason != reasonNodeLost || !strings.Contains(s.Message, "silent for 15m0s") {
				t.Errorf("after 16 minutes the pod is %s %s: %s", s.Phase, s.Reason, s.Message)
			}
			w.wants("after 16 minutes", 0, rest...)
			w.finish(p)
		})
	}
}

// TestMachinesAreKeptWhileAllAreSilent: no pod fails if no agent answers, if the cloud does not answer, or if the agents answer again in time. The
// same holds for a node that restarts while its machines are silent.
func TestMachinesAreKeptWhileAllAreSilent(t *testing.T) {
	for name, fault := range map[string]func(*world, bool){
		"the network":  func(*world, bool) {},
		"the only one": func(*world, bool) {},
		"the cloud":    func(w *world, on bool) { w.cloud.Set(func(f *machinetest.Faults) { f.Dark = on }) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			authority := newAuthority(t)
			p := w.start(authority, 0, false)
			pods := []*corev1.Pod{w.pod("one", nil)}
			if name != "the only one" {
				pods = append(pods, w.pod("two", nil))
			}
			p.keep(20 * time.Second)
			silent := func(on bool, of ...*corev1.Pod) {
				for _, pod := range of {
					w.do(pod.UID, func(s *simulated) { s.silent = on })
				}
			}
			hit := pods
			if name == "the cloud" {
				hit = pods[:1]
			}
			fault(w, true)
			silent(true, hit...)
			p.keep(time.Hour)
			if name == "the network" {
				p.stop()
				p = w.start(authority, 0, false)
				p.keep(time.Hour)
			}
			w.wants(name+" is away", 0, pods...)
			silent(false, hit[0])
			fault(w, false)
			p.keep(time.Minute)
			silent(false, hit...)
			p.keep(5 * time.Minute)
			w.wants(name+" is back", 0, pods...)
			silent(true, pods[0])
			p.keep(10 * time.Minute)
			silent(false, pods[0])
			p.keep(10 * time.Minute)
			silent(true, pods[0])
			p.keep(10 * time.Minute)
			w.wants("silent for ten minutes twice", 0, pods...)
			w.finish(p)
		})
	}
}

// TestMachineThatLies: the node does not trust a machine that reports another pod, and stops the machine.
func TestMachineThatLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.start(newAuthority(t), 0, false)
		pod := w.pod("one", nil)
		p.keep(20 * time.Second)
		if s := w.status(pod); s.PodIP != "10.0.0.1" {
			t.Errorf("the address of the pod is %q, want the cloud's", s.PodIP)
		}
		w.do(pod.UID, func(s *simulated) { s.lies = "another" })
		p.keep(20 * time.Second)
		if s := w.status(pod); s.Phase != corev1.PodFailed || s.Reason != reasonWrong {
			t.Errorf("the pod is %s %s", s.Phase, s.Reason)
		}
		if n := len(w.cloud.Running()); n != 0 {
			t.Errorf("%d machines run", n)
		}
		w.finish(p)
	})
}

// TestCloudIsDark: for ten minutes, the API does not answer. Pods keep their statuses, reports of agents are handled, and the node executes pending
// actions afterwards.
func TestCloudIsDark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.start(newAuthority(t), 0, false)
		one, two := w.pod("one", nil), w.pod("two", nil)
		p.keep(20 * time.Second)
		w.cloud.Set(func(f *machinetest.Faults) { f.Dark = true })
		three := w.pod("three", nil)
		p.keep(5 * time.Minute)
		w.do(two.UID, func(s *simulated) { s.end(corev1.PodSucceeded) })
		p.keep(5 * time.Minute)
		if a, b := w.status(one).Phase, w.status(two).Phase; a != corev1.PodRunning || b != corev1.PodSucceeded {
			t.Errorf("while it is dark pod one is %s and pod two is %s", a, b)
		}
		w.cloud.Set(func(f *machinetest.Faults) { f.Dark = false })
		p.keep(4 * time.Minute)
		_ = w.indexer.Delete(two)
		p.keep(2 * time.Minute)
		w.wants("afterwards", 0, one, three)
		w.finish(p)
	})
}

// TestTwoNodesWithOneName: both nodes create a pod. The pod gets one machine and runs there once.
func TestTwoNodesWithOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		authority := newAuthority(t)
		a, b := w.start(authority, 0, false), w.start(authority, 0, false)
		pod := w.pod("one", nil)
		for range 60 {
			_ = a.reconcile(t.Context())
			_ = b.reconcile(t.Context())
			time.Sleep(time.Second)
		}
		w.wants("a minute later", 0, pod)
		w.finish(a, b)
	})
}

// TestDNSOfTheClusterIsMissing: a pod that expects the cluster DNS gets one event, on a new machine and on a standby machine. A pod that requests the DNS
// of its machine, or its own, gets no event.
func TestDNSOfTheClusterIsMissing(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		for policy, want := range map[corev1.DNSPolicy]string{
			corev1.DNSClusterFirst: "spec.dnsPolicy: ClusterFirst: ", "": "spec.dnsPolicy: ClusterFirst: ", corev1.DNSDefault: "", corev1.DNSNone: "",
		} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *Config) {
					if waiting {
						c.Standby = []Standby{{Type: "small", Count: 1}}
					}
				})
				p := w.start(newAuthority(t), 0, false)
				p.keep(4 * time.Minute)
				pod := w.pod("one", func(pod *corev1.Pod) { pod.Spec.DNSPolicy = policy })
				if refusals := w.config.Capabilities().Check(pod); len(refusals) > 0 {
					t.Errorf("%q: refused: %v", policy, refusals)
				}
				p.keep(20 * time.Second)
				w.wants(string(policy), len(w.config.Standby), pod)
				w.finish(p)
				close(w.events.Events)
				var got []string
				for e := range w.events.Events {
					got = append(got, e)
				}
				switch {
				case want == "":
					if len(got) > 0 {
						t.Errorf("%q: events %q", policy, got)
					}
				case len(got) != 1 || !strings.HasPrefix(got[0], "Warning MissingClusterDNS "+want):
					t.Errorf("%q: events %q, want one", policy, got)
				}
			})
		}
	}
}

// TestImagesOfOthersAreNotSent: a machine gets only the images of its pod, by any of their names.
func TestImagesOfOthersAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.start(newAuthority(t), 0, false)
		pod := w.pod("one", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "busybox" })
		p.keep(20 * time.Second)
		p.driver.mu.Lock()
		c := p.driver.cells[w.machinesOf()[pod.UID][0]]
		p.driver.mu.Unlock()
		for image, want := range map[string]bool{"busybox": true, "docker.io/library/busybox:latest": true, "other": false} {
			if got := p.driver.allows(c, image); got != want {
				t.Errorf("%s: allowed %t, want %t", image, got, want)
			}
		}
		w.finish(p)
	})
}

// TestPodOfAnUntaggedMachineRunsOnce: while the cloud refuses a pod's tags, or their answer is lost, the standby machine does not get the pod. It gets the
// pod after the tags are set, also after a restart.
func TestPodOfAnUntaggedMachineRunsOnce(t *testing.T) {
	for name, fault := range map[string]func(f *machinetest.Faults, on bool){
		"refused": func(f *machinetest.Faults, on bool) { f.Throttled = on },
		"lost":    func(f *machinetest.Faults, on bool) { f.Dark, f.Lost = on, on },
		"dark":    func(f *machinetest.Faults, on bool) { f.Dark = on },
	} {
		for _, restarts := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *Config) { c.Standby = []Standby{{Type: "small", Count: 1}} })
				authority := newAuthority(t)
				p := w.start(authority, 0, false)
				p.keep(4 * time.Minute)
				w.wants(name+", before", 1)
				pod := w.pod("one", nil)
				w.cloud.Set(func(f *machinetest.Faults) { fault(f, true) })
				if err := p.driver.kit.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
					t.Errorf("%s: CreatePod is no error", name)
				}
				w.mu.Lock()
				for _, s := range w.cells {
					s.change() // the agent reports
				}
				w.mu.Unlock()
				synctest.Wait()
				tagged := w.machinesOf()[pod.UID] != nil
				w.mu.Lock()
				if w.given[pod.UID] > 0 && !tagged {
					t.Errorf("%s: the pod is given to a machine whose tags do not say so", name)
				}
				w.mu.Unlock()
				if restarts {
					p.stop()
					time.Sleep(20 * time.Second)
				}
				w.cloud.Set(func(f *machinetest.Faults) { fault(f, false) })
				if restarts {
					p = w.start(authority, 0, false)
				}
				p.keep(6 * time.Minute)
				w.wants(fmt.Sprintf("%s, afterwards, restarted: %t", name, restarts), 1, pod)
				w.finish(p)
			})
		}
	}
}

// TestMachineThatReportsAPodDoesNotWait: no other pod gets the machine, and fill does not stop it as surplus, independently of its tags.
func TestMachineThatReportsAPodDoesNotWait(t *testing.T) {
	c := &cellState{Machine: machine.Machine{State: machine.Running, Tags: map[string]string{tagStandby: "true"}}}
	for pod, want := range map[types.UID]bool{"": true, "another": false} {
		if c.said = (&cell.State{Pod: pod}); c.isWaiting() != want {
			t.Errorf("a machine that reports pod %q waits: %t", pod, !want)
		}
	}
}

// TestMaxMachinesHoldsForManyStartsAtOnce: a machine counts from the beginning of its start, without a gap.
func TestMaxMachinesHoldsForManyStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.MaxMachines, c.StartsPerMinute = 2, 100000 })
		p := w.start(newAuthority(t), 0, false)
		var creates sync.WaitGroup
		for i := range 50 {
			pod := w.pod(fmt.Sprint("p", i), nil)
			creates.Go(func() { _ = p.driver.kit.CreatePod(t.Context(), pod) })
		}
		creates.Wait()
		if n := len(w.cloud.Running()); n != 2 {
			t.Errorf("%d machines, want 2", n)
		}
		w.finish(p)
	})
}

// TestNewKeyDoesNotHideMachines: a node that lost its key returns an error, and does not silently ignore its machines.
func TestNewKeyDoesNotHideMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.start(newAuthority(t), 0, false)
		w.pod("one", nil)
		for _, want := range []bool{false, true} {
			d := newDriver(p.driver.in, w.config, w.cloud, newAuthority(t), usual)
			d.newKey = true
			if _, err := d.List(t.Context()); (err != nil) != want || want && !strings.Contains(err.Error(), "authorityFile") {
				t.Errorf("machines: %t: %v", want, err)
			}
			p.keep(20 * time.Second)
		}
		w.finish(p)
	})
}

// TestAgentIsDeliveredOnce: with ssh, a node delivers the agent to a machine that does not answer, again after a failure, and not after a success. The user
// data have the keys, and fit EC2.
func TestAgentIsDeliveredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) {
			c.Containers, c.QEMU, c.EC2, c.SSH = "", nil, &ec2.Config{SubnetID: "subnet-1"}, &delivery.Config{Agent: "vk-cell", User: "debian"}
		})
		w.boots = time.Hour
		authority := newAuthority(t)
		var hosts []string
		p := w.open(authority, 0, false)
		p.driver.deliver = func(_ context.Context, token, host string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if hosts = append(hosts, host); len(hosts) == 1 {
				return errors.New("connection refused")
			}
			w.cells[token].boots = time.Now().Add(3 * time.Second)
			return nil
		}
		p.begin()
		one := w.pod("one", nil)
		p.keep(time.Minute)
		w.wants("a minute later", 0, one)
		if !slices.Equal(hosts, []string{"10.0.0.1", "10.0.0.1"}) {
			t.Errorf("deliveries to %s", hosts)
		}
		data := p.driver.specOf(machine.Spec{}, machine.Type{}, "token", one).UserData
		if host, node := authority.SSHKeys("token"); len(data) > 16<<10 || !bytes.HasPrefix(data, []byte("#cloud-config\n")) || bytes.Equal(host, node) {
			t.Errorf("the user data have %d bytes: %s", len(data), data)
		}
		w.finish(p)
	})
}
