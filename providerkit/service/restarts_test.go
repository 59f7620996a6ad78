// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// crashing is a cloud whose instances have one container. When the container has ended, it stays so until it is
// started.
type crashing struct {
	*cloud
	begun time.Time
	code  int32

	lock   sync.Mutex
	starts []time.Duration           // guarded by lock; when
	runs   func(n int) time.Duration // how long the run after that start takes; 0 is until the test ends it
	fails  error                     // guarded by lock
	slow   chan struct{}             // a start waits until it is closed
	late   time.Duration             // how long a list takes
	stops  []vm                      // guarded by lock
}

func (c *crashing) List(ctx context.Context) ([]vm, error) {
	time.Sleep(c.late) // in a bubble
	return c.cloud.List(ctx)
}

func (c *crashing) Status(pod *corev1.Pod, v vm) corev1.PodStatus {
	seen := podstatus.Container{Name: "main", State: podstatus.Running}
	if v.over {
		seen.State, seen.Run.ExitCode = podstatus.Exited, &c.code
	}
	return podstatus.Status(pod, podstatus.Pod{Containers: []podstatus.Container{seen}})
}

func (c *crashing) end(over bool) (now vm) {
	c.edit(func() { c.vms[0].over = over; now = c.vms[0] })
	return now
}

func (c *crashing) Start(ctx context.Context, _ *corev1.Pod, _ vm) (vm, error) {
	if c.slow != nil {
		<-c.slow
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.starts = append(c.starts, time.Since(c.begun).Round(time.Second))
	if c.fails != nil {
		return vm{}, c.fails
	}
	if lasts := c.runs(len(c.starts)); lasts > 0 {
		time.AfterFunc(lasts, func() { c.end(true) })
	}
	return c.end(false), nil
}

func (c *crashing) Stop(ctx context.Context, pod *corev1.Pod, v vm) error {
	c.lock.Lock()
	c.stops = append(c.stops, v)
	c.lock.Unlock()
	return c.cloud.Stop(ctx, pod, v)
}

// pauses returns the times between the starts.
func (c *crashing) pauses() (out []string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for i := 1; i < len(c.starts); i++ {
		out = append(out, (c.starts[i] - c.starts[i-1]).String())
	}
	return out
}

// crashed returns a pod whose container has ended for the first time.
func crashed(h *home, d *crashing, change ...func(*Config)) (*Provider[vm], *corev1.Pod) {
	h.Helper()
	p, _ := h.start(d, append(change, func(c *Config) { c.Rest = time.Second })...)
	pod := h.pod("web")
	h.create(p, pod)
	time.Sleep(lag + 2*time.Second)
	d.begun = time.Now()
	d.end(true)
	return p, pod
}

func is(t *testing.T, p *Provider[vm], pod *corev1.Pod) string {
	t.Helper()
	got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
	if err != nil {
		return err.Error()
	}
	c := got.Status.ContainerStatuses[0]
	text := fmt.Sprintf("%s %d", got.Status.Phase, c.RestartCount)
	switch {
	case c.State.Running != nil:
		text += " runs"
	case c.State.Waiting != nil:
		text += " " + c.State.Waiting.Reason
	case c.State.Terminated != nil:
		text += fmt.Sprint(" ended ", c.State.Terminated.ExitCode)
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		text += fmt.Sprint(" after ", last.ExitCode)
	}
	return text
}

// TestStarterHasTheBackoffOfAKubelet: the first restart is immediate, the next one comes after 10 s, and the
// pause doubles up to 5 minutes.
func TestStarterHasTheBackoffOfAKubelet(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &crashing{cloud: h.cloud, code: 3, runs: func(int) time.Duration { return 10 * time.Millisecond }}
		p, pod := crashed(h, d)
		time.Sleep(5 * time.Second)
		if got := is(t, p, pod); got != "Running 1 CrashLoopBackOff after 3" {
			t.Errorf("after the first start: %s", got)
		}
		run := Target[vm]{Pod: pod, Container: "main", State: &corev1.ContainerStatus{RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		if !p.RunEnded(run) || !p.RunEnded(Target[vm]{Pod: pod, Container: "main"}) {
			t.Error("a log that is followed goes on while the container waits for its next run")
		}
		got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
		if err != nil || !strings.HasPrefix(got.Status.ContainerStatuses[0].State.Waiting.Message, "back-off 10s restarting failed container=main pod=web_ns(") {
			t.Errorf("got %+v, %v", got.Status.ContainerStatuses[0].State.Waiting, err)
		}
		time.Sleep(20 * time.Minute)
		// The end of each run is seen a round after its start.
		if got, want := d.pauses(), []string{"11s", "21s", "41s", "1m21s", "2m41s", "5m1s", "5m1s"}; !slices.Equal(got, want) {
			t.Errorf("the pauses are %v, want %v", got, want)
		}
	})
}

// TestLongRunEndsTheBackoff: after a run of more than ten minutes, a container is restarted at once. The restart
// count goes on.
func TestLongRunEndsTheBackoff(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &crashing{cloud: h.cloud, code: 3, runs: func(n int) time.Duration {
			if n == 2 {
				return 11*time.Minute + 300*time.Millisecond
			}
			return 10 * time.Millisecond
		}}
		p, pod := crashed(h, d)
		time.Sleep(11*time.Minute + 19*time.Second)
		if got, want := d.pauses(), []string{"11s", "11m1s"}; !slices.Equal(got, want) {
			t.Errorf("the pauses are %v, want %v", got, want)
		}
		if got := is(t, p, pod); got != "Running 3 CrashLoopBackOff after 3" {
			t.Errorf("after the long run: %s", got)
		}
	})
}

// TestStarterKeepsTheRestartPolicy: a container that has ended for good by the restart policy is not started.
func TestStarterKeepsTheRestartPolicy(t *testing.T) {
	for policy, codes := range map[corev1.RestartPolicy]map[int32]string{
		corev1.RestartPolicyNever:     {0: "Succeeded 0 ended 0", 3: "Failed 0 ended 3"},
		corev1.RestartPolicyOnFailure: {0: "Succeeded 0 ended 0", 3: "Running 1 runs after 3"},
		corev1.RestartPolicyAlways:    {0: "Running 1 runs after 0", 3: "Running 1 runs after 3"},
	} {
		for code, want := range codes {
			bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
				d := &crashing{cloud: h.cloud, code: code, runs: func(int) time.Duration { return 0 }}
				p, _ := h.start(d, func(c *Config) { c.Rest = time.Second })
				pod := h.pod("web")
				pod.Spec.RestartPolicy = policy
				h.create(p, pod)
				time.Sleep(lag + 2*time.Second)
				d.end(true)
				time.Sleep(5 * time.Second)
				if got := is(t, p, pod); got != want {
					t.Errorf("%s, exit code %d: %s, want %s", policy, code, got, want)
				}
			})
		}
	}
}

// TestRestartCountGoesOn: the restart count goes on after a restart of the process, even if the process ended
// between a start and its report.
func TestRestartCountGoesOn(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &crashing{cloud: h.cloud, code: 3, runs: func(int) time.Duration { return 10 * time.Millisecond }}
		p, pod := crashed(h, d)
		time.Sleep(15 * time.Second)
		told, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
		if err != nil || is(t, p, pod) != "Running 2 CrashLoopBackOff after 3" {
			t.Fatalf("%s, %v", is(t, p, pod), err)
		}
		if err := h.pods.Update(told); err != nil {
			t.Fatal(err)
		}
		for _, stop := range h.stops {
			stop()
		}
		p, stop := h.start(d, func(c *Config) { c.Rest = time.Second })
		if got := is(t, p, pod); got != "Running 2 CrashLoopBackOff after 3" {
			t.Errorf("after a restart: %s", got)
		}
		stop()
		d.end(false) // the process was killed between its start and the report
		p, _ = h.start(d, func(c *Config) { c.Rest = time.Second })
		if got := is(t, p, pod); got != "Running 3 runs after 3" {
			t.Errorf("after another one: %s", got)
		}
	})
}

// TestBackoffGoesOnAfterARestartOfTheProcess: after a restart of the process, a container is started when its
// back-off is over, even if the first list is answered late.
func TestBackoffGoesOnAfterARestartOfTheProcess(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &crashing{cloud: h.cloud, code: 3, runs: func(int) time.Duration { return 10 * time.Millisecond }}
		p, pod := crashed(h, d)
		time.Sleep(15 * time.Second)
		told, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
		if err != nil || is(t, p, pod) != "Running 2 CrashLoopBackOff after 3" {
			t.Fatalf("%s, %v", is(t, p, pod), err)
		}
		if err := h.pods.Update(told); err != nil {
			t.Fatal(err)
		}
		for _, stop := range h.stops {
			stop()
		}
		d.late = 200 * time.Millisecond
		h.start(d, func(c *Config) { c.Rest = time.Second })
		time.Sleep(19 * time.Second)
		if n := len(d.pauses()); n != 1 {
			t.Errorf("the container was started %d times within its back-off", n-1)
		}
		time.Sleep(3 * time.Second)
		if n := len(d.pauses()); n != 2 {
			t.Errorf("the container was started %d times after its back-off, want once", n-1)
		}
	})
}

// TestPodThatIsDeletedIsNotStartedAgain: a stop waits for a start that is under way, and then stops the new run.
func TestPodThatIsDeletedIsNotStartedAgain(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &crashing{cloud: h.cloud, code: 3, runs: func(int) time.Duration { return 0 }, slow: make(chan struct{})}
		p, pod := crashed(h, d)
		time.Sleep(3 * time.Second) // the start is under way
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = new(pod.CreationTimestamp)
		deleted := make(chan error, 1)
		go func() { deleted <- p.DeletePod(t.Context(), pod) }()
		synctest.Wait()
		d.lock.Lock()
		early := len(d.stops)
		d.lock.Unlock()
		close(d.slow)
		if err := <-deleted; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d.lock.Lock()
		defer d.lock.Unlock()
		if early != 0 || len(d.stops) != 1 || d.stops[0].over || len(d.starts) != 1 {
			t.Errorf("stopped %d times before the start was over, %v in all, after %d starts", early, d.stops, len(d.starts))
		}
	})
}

// stuck is a cloud that never answers a request to start a container.
type stuck struct {
	*crashing
	begun, ended []string // guarded by lock; the names of pods
}

func (s *stuck) Start(ctx context.Context, pod *corev1.Pod, v vm) (vm, error) {
	s.lock.Lock()
	s.begun = append(s.begun, pod.Name)
	s.lock.Unlock()
	<-ctx.Done()
	s.lock.Lock()
	defer s.lock.Unlock()
	s.ended = append(s.ended, pod.Name)
	return v, ctx.Err()
}

// TestStartsThatHangHoldUpNoOtherPod: starts that hang have a deadline. A pod that waits behind them for its own
// start can be deleted.
func TestStartsThatHangHoldUpNoOtherPod(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &stuck{crashing: &crashing{cloud: h.cloud, code: 3}}
		p, _ := h.start(d, func(c *Config) { c.Rest = time.Second })
		pods := map[string]*corev1.Pod{}
		for n := range mostRestarts + 1 {
			pod := h.pod(fmt.Sprint("web-", n))
			h.create(p, pod)
			pods[pod.Name] = pod
		}
		time.Sleep(lag + 2*time.Second)
		d.edit(func() {
			for i := range d.vms {
				d.vms[i].over = true
			}
		})
		time.Sleep(5 * time.Second)
		d.lock.Lock()
		for _, name := range d.begun {
			delete(pods, name)
		}
		d.lock.Unlock()
		if len(pods) != 1 {
			t.Fatalf("%d pods wait for a start, want one", len(pods))
		}
		for _, pod := range pods {
			pod = pod.DeepCopy()
			pod.DeletionTimestamp = new(pod.CreationTimestamp)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := p.DeletePod(ctx, pod); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(startTime)
		d.lock.Lock()
		defer d.lock.Unlock()
		if len(d.begun) != mostRestarts || len(d.ended) != mostRestarts {
			t.Errorf("the starts of %q were asked for, and those of %q have ended by their deadline", d.begun, d.ended)
		}
	})
}

// TestStartThatFailsIsTriedAgain: a failed start is retried with the back-off, and does not count as a run.
func TestStartThatFailsIsTriedAgain(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &crashing{cloud: h.cloud, code: 3, runs: func(int) time.Duration { return 0 }, fails: errors.New("busy")}
		p, pod := crashed(h, d)
		time.Sleep(12 * time.Second)
		d.lock.Lock()
		d.fails = nil
		d.lock.Unlock()
		if got := is(t, p, pod); got != "Running 0 CrashLoopBackOff after 3" {
			t.Errorf("while it fails: %s", got)
		}
		time.Sleep(30 * time.Second)
		if got, want := d.pauses(), []string{"10s", "20s"}; !slices.Equal(got, want) || is(t, p, pod) != "Running 1 runs after 3" {
			t.Errorf("the pauses are %v, want %v; %s", got, want, is(t, p, pod))
		}
	})
}

// TestCrashLoopThatIsDeletedHasEnded: a deleted pod in a crash loop has ended, and is not started again.
func TestCrashLoopThatIsDeletedHasEnded(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &crashing{cloud: h.cloud, code: 3, runs: func(int) time.Duration { return 10 * time.Millisecond }}
		p, pod := crashed(h, d)
		time.Sleep(5 * time.Second)
		d.edit(func() { d.stop = func(vm) error { return nil } })
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = new(pod.CreationTimestamp)
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := is(t, p, pod); got != "Running 1 ended 3 after 3" && got != "Running 1 ended 3" {
			t.Errorf("it is %s", got)
		}
		if n := len(d.pauses()); n != 0 {
			t.Errorf("it was started %d times more", n)
		}
	})
}

// TestForgettingRunsHoldsNoLock: forget calls its function without its lock. The function asks the cache, and
// the cache takes the lock of the runs while it holds its own lock.
func TestForgettingRunsHoldsNoLock(t *testing.T) {
	r := newRestarts(time.Second)
	r.lives["uid-1"] = &life{}
	r.forget(func(types.UID) bool {
		if !r.mu.TryLock() {
			t.Fatal("it asks with its lock held")
		}
		r.mu.Unlock()
		return false
	})
	if len(r.lives) != 0 {
		t.Error("a pod that is gone is not forgotten")
	}
}
