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

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/probing"
)

// asker is a Prober whose results come from the test.
type asker struct {
	config probing.Config

	mu      sync.Mutex
	targets map[string]probing.Target // guarded by mu
	results map[string]probing.Result // guarded by mu
	ensured []string                  // guarded by mu; IDs, in the order in which they were new
	runs    int                       // guarded by mu; how often Run is under way
}

func (a *asker) Run(ctx context.Context) {
	a.mu.Lock()
	a.runs++
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.runs--
	a.mu.Unlock()
}

func (a *asker) Ensure(t probing.Target) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.targets[t.ID]; !known {
		a.ensured = append(a.ensured, t.ID)
		a.results[t.ID] = probing.Result{Started: t.Container.StartupProbe == nil, Ready: t.Container.StartupProbe == nil && t.Container.ReadinessProbe == nil}
	}
	a.targets[t.ID] = t
}

func (a *asker) Forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.targets, id)
	delete(a.results, id)
}

func (a *asker) Result(id string) (probing.Result, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.results[id]
	return r, ok
}

func (*asker) Metrics(context.Context) ([]*dto.MetricFamily, error) {
	return []*dto.MetricFamily{{Name: new("prober_probe_total")}}, nil
}

// finds sets the result of the only container.
func (a *asker) finds(t *testing.T, r probing.Result) {
	t.Helper()
	a.mu.Lock()
	var of *corev1.Pod
	for id, target := range a.targets {
		a.results[id], of = r, target.Pod
	}
	a.mu.Unlock()
	if of == nil {
		t.Fatal("no container is probed")
	}
	if r.Failed != "" {
		a.config.Event(of, "main", corev1.EventTypeWarning, "Unhealthy", string(r.Failed)+" probe failed: sick")
	}
	a.config.Changed(of.UID)
	synctest.Wait()
}

// target returns the only probed container.
func (a *asker) target(t *testing.T) probing.Target {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, target := range a.targets {
		return target
	}
	t.Fatal("no container is probed")
	return probing.Target{}
}

// count returns the number of probed containers, and how often Run is under way.
func (a *asker) count() (containers, runs int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.targets), a.runs
}

// judged returns how often a container was probed anew.
func (a *asker) judged() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ensured)
}

// clinic is a cloud that lacks probes and ends unhealthy instances. Its container has one run after another.
type clinic struct {
	*cloud
	asker    *asker
	recorder *record.FakeRecorder
	lacking  Probes
	exec     func(ctx context.Context, attach api.AttachIO) error

	began    time.Time     // guarded by cloud.mu; of the run that is on, or is to come
	between  string        // the state that is shown before it begins: waits or ends
	earlier  time.Time     // guarded by cloud.mu; when the run before began
	restarts int32         // guarded by cloud.mu
	asked    []string      // guarded by cloud.mu; the requests, with their reasons
	fails    error         // guarded by cloud.mu
	slow     time.Duration // guarded by cloud.mu; how long a request takes
	ip       string
}

func newClinic(h *home, lacking Probes) *clinic {
	return &clinic{cloud: h.cloud, recorder: record.NewFakeRecorder(100), lacking: lacking, ip: "10.0.0.1", began: time.Now()}
}

func (c *clinic) config(config *Config) {
	config.Recorder = c.recorder
	config.Probes = func(conf probing.Config) probing.Prober {
		c.asker = &asker{config: conf, targets: map[string]probing.Target{}, results: map[string]probing.Result{}}
		return c.asker
	}
}

func (c *clinic) Lacking(*corev1.Pod, *corev1.Container) Probes { return c.lacking }

func (c *clinic) End(ctx context.Context, of Target[vm], reason string) error {
	return c.ask(ctx, "end "+of.Container+": "+reason, func() {
		for i := range c.vms {
			c.vms[i].over = true
		}
	})
}

func (c *clinic) ask(ctx context.Context, what string, do func()) error {
	c.mu.Lock()
	slow := c.slow
	c.mu.Unlock()
	if slow > 0 && !pause(ctx, slow) {
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, what)
	if c.fails == nil {
		do()
	}
	return c.fails
}

func (c *clinic) Exec(ctx context.Context, _ Target[vm], _ []string, attach api.AttachIO) error {
	return c.exec(ctx, attach)
}

func (c *clinic) Status(pod *corev1.Pod, v vm) corev1.PodStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.cloud.Status(pod, v)
	if c.ip != "" {
		s.PodIPs = []corev1.PodIP{{IP: c.ip}}
	}
	for i := range s.ContainerStatuses {
		k := &s.ContainerStatuses[i]
		k.ContainerID, k.RestartCount = "cloud://"+v.id+"/"+k.Name, c.restarts
		if before := time.Now().Before(c.began); before && c.between == "waits" {
			k.State, s.Phase = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, corev1.PodPending
			continue
		} else if before {
			k.State, s.Phase = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(c.earlier), ExitCode: 143}}, corev1.PodSucceeded
			continue
		}
		if v.over {
			k.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(c.began)}}
			continue
		}
		k.State.Running.StartedAt = metav1.NewTime(c.began)
		k.Started, k.Ready = new(true), true
	}
	return s
}

// requests returns the requests so far.
func (c *clinic) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// events returns the events since the last call.
func (c *clinic) events() (all []string) {
	for len(c.recorder.Events) > 0 {
		all = append(all, <-c.recorder.Events)
	}
	return all
}

// restarting is a clinic that can restart containers. The test decides how much of a restart the clinic shows.
type restarting struct {
	*clinic
	counts bool // it reports the number of restarts
}

func (r restarting) Restart(ctx context.Context, of Target[vm], reason string) error {
	return r.ask(ctx, "restart "+of.Container+": "+reason, func() {
		r.earlier, r.began = r.began, time.Now()
		if r.between != "" {
			r.began = r.began.Add(3 * time.Second)
		}
		if r.counts {
			r.restarts++
		}
	})
}

func byCommand(change ...func(*corev1.Probe)) *corev1.Probe {
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ask"}}}, PeriodSeconds: 10, TimeoutSeconds: 1}
	for _, f := range change {
		f(p)
	}
	return p
}

// shown returns the pod as the provider shows it now.
func shown(t *testing.T, p *Provider[vm], pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	synctest.Wait()
	got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantState(t *testing.T, pod *corev1.Pod, started, ready bool) {
	t.Helper()
	s := pod.Status.ContainerStatuses[0]
	if s.Started == nil || *s.Started != started || s.Ready != ready {
		t.Errorf("the container is %+v, want started %t and ready %t", s, started, ready)
	}
}

// TestProbesOfTheNodeSayHowReadyAContainerIs: a container is started and ready by the results of the node's
// probes. The probes learn that the pod is being stopped.
func TestProbesOfTheNodeSayHowReadyAContainerIs(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Startup: byCommand(), Readiness: byCommand()})
		p, _ := h.start(c, c.config)
		pod := h.pod("a")
		h.create(p, pod)
		wantState(t, shown(t, p, pod), false, false)
		c.asker.finds(t, probing.Result{Started: true})
		wantState(t, shown(t, p, pod), true, false)
		c.asker.finds(t, probing.Result{Started: true, Ready: true})
		wantState(t, shown(t, p, pod), true, true)
		if families, err := p.GetMetricsProbes(t.Context()); err != nil || len(families) != 1 {
			t.Errorf("metrics %v, %v", families, err)
		}
		got := shown(t, p, pod)
		got.DeletionTimestamp = new(metav1.Now())
		p.Cache().Update(got)
		if c.asker.target(t).Pod.DeletionTimestamp == nil {
			t.Error("the probes do not know that the pod is being stopped")
		}
	})
}

// TestProbeThatNeedsAnAddressWaitsForIt: a probe that needs the pod's address waits for it. The container is not
// ready until then.
func TestProbeThatNeedsAnAddressWaitsForIt(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Readiness: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}}})
		c.ip = ""
		p, _ := h.start(c, c.config)
		pod := h.pod("a")
		h.create(p, pod)
		wantState(t, shown(t, p, pod), true, false)
		if c.asker.judged() > 0 {
			t.Error("a container without an address is probed by the network")
		}
		c.edit(func() { c.ip = "10.0.0.1" })
		p.Cache().Refresh(pod.UID)
		if ips := c.asker.target(t).PodIPs; !slices.Equal(ips, []string{"10.0.0.1"}) {
			t.Errorf("addresses %q", ips)
		}
	})
}

// TestFailedProbeEndsThePodWhereNothingRestarts: if the service cannot restart containers, a failed probe ends
// the pod. The pod's status gives the reason, even if the program exited with code 0.
func TestFailedProbeEndsThePodWhereNothingRestarts(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Liveness: byCommand()})
		p, stop := h.start(c, c.config)
		pod := h.pod("a")
		h.create(p, pod)
		shown(t, p, pod)
		time.Sleep(time.Minute)
		c.asker.finds(t, probing.Result{Started: true, Ready: true, Failed: probing.Liveness})
		if got, want := c.requests(), []string{"end main: Container main failed liveness probe: sick"}; !slices.Equal(got, want) {
			t.Fatalf("asked for %q, want %q", got, want)
		}
		if got, want := c.events(), []string{"Warning Unhealthy Liveness probe failed: sick", "Normal Killing Container main failed liveness probe"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		time.Sleep(time.Minute)
		want := "Failed Unhealthy Container main failed liveness probe: sick"
		tell := func(pod *corev1.Pod) string {
			return fmt.Sprint(pod.Status.Phase, " ", pod.Status.Reason, " ", pod.Status.Message)
		}
		got := shown(t, p, pod)
		if tell(got) != want {
			t.Errorf("the pod is %q, want %q", tell(got), want)
		}
		stop()
		if err := h.pods.Update(got); err != nil {
			t.Fatal(err)
		}
		p, _ = h.start(c, c.config)
		if got := shown(t, p, pod); tell(got) != want {
			t.Errorf("after a restart of this process the pod is %q, want %q", tell(got), want)
		}
	})
}

// TestPodThatWasNotEndedIsNotUnhealthy: after the service refused to end an unhealthy pod, a later end of the
// pod is the pod's own end.
func TestPodThatWasNotEndedIsNotUnhealthy(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Liveness: byCommand()})
		p, _ := h.start(c, c.config)
		pod := h.pod("a")
		h.create(p, pod)
		time.Sleep(time.Minute)
		c.edit(func() { c.fails = errors.New("busy") })
		c.asker.finds(t, probing.Result{Started: true, Failed: probing.Liveness})
		if got := c.requests(); len(got) != 1 {
			t.Fatalf("asked for %q, want one end", got)
		}
		tell := func(want string) {
			t.Helper()
			got := shown(t, p, pod).Status
			if text := fmt.Sprint(got.Phase, " ", got.Reason, got.Message); text != want {
				t.Errorf("the pod is %q, want %q", text, want)
			}
		}
		tell("Running ")
		c.edit(func() { c.fails = nil })
		time.Sleep(time.Minute)
		tell("Running ")
		c.edit(func() { c.vms[0].over = true })
		time.Sleep(time.Minute)
		tell("Succeeded ")
	})
}

// TestEndIsExplainedBeforeItsAnswer: a list may show the end of an unhealthy pod before the service answers the
// request. The pod is Failed and Unhealthy at once, because the phase of an ended pod does not change.
func TestEndIsExplainedBeforeItsAnswer(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Liveness: byCommand()})
		p, _ := h.start(c, c.config)
		pod := h.pod("a")
		h.create(p, pod)
		time.Sleep(time.Minute)
		c.edit(func() { c.slow = 10 * time.Second })
		c.asker.finds(t, probing.Result{Started: true, Failed: probing.Liveness})
		c.edit(func() { c.vms[0].over = true })
		p.Cache().Hurry()
		time.Sleep(5 * time.Second)
		if got := c.requests(); len(got) != 0 {
			t.Fatalf("the service has answered: %q", got)
		}
		for range 2 {
			if got := shown(t, p, pod).Status; got.Phase != corev1.PodFailed || got.Reason != ReasonUnhealthy {
				t.Errorf("the pod is %s %q, want it Failed and Unhealthy", got.Phase, got.Reason)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestFailedProbeRestartsByTheRestartPolicy: a failed probe restarts the container if the restart policy allows
// it, and the pod stays Running, whatever the service shows in between. The provider counts the restart, even if
// the service does not.
func TestFailedProbeRestartsByTheRestartPolicy(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]string{
		corev1.RestartPolicyAlways: "restart", corev1.RestartPolicyOnFailure: "restart", corev1.RestartPolicyNever: "end",
	} {
		for _, counts := range []bool{true, false} {
			for between, code := range map[string]int32{"": 137, "waits": 137, "ends": 143} {
				t.Run(fmt.Sprint(policy, counts, between), func(t *testing.T) {
					bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
						c := newClinic(h, Probes{Startup: byCommand(), Liveness: byCommand()})
						c.between = between
						p, _ := h.start(restarting{c, counts}, c.config)
						pod := h.pod("a")
						pod.Spec.RestartPolicy = policy
						h.create(p, pod)
						time.Sleep(time.Minute)
						shown(t, p, pod)
						c.asker.finds(t, probing.Result{Failed: probing.Startup})
						if got := c.requests(); len(got) != 1 || !strings.HasPrefix(got[0], want+" main: Container main failed startup probe") {
							t.Fatalf("asked for %q, want one %s", got, want)
						}
						if said := c.events(); strings.Contains(said[1], "will be restarted") != (want == "restart") {
							t.Errorf("events %q", said)
						}
						if want == "end" {
							return
						}
						for range 10 {
							time.Sleep(time.Second)
							p.Cache().Refresh(pod.UID)
							if got := shown(t, p, pod).Status; got.Phase != corev1.PodRunning {
								t.Errorf("the pod is %s while it is restarted", got.Phase)
							}
						}
						s := shown(t, p, pod).Status.ContainerStatuses[0]
						if last := s.LastTerminationState.Terminated; s.RestartCount != 1 || last == nil || last.ExitCode != code {
							t.Errorf("the container is %+v, want it restarted once", s)
						}
						if r, _ := c.asker.Result(c.asker.target(t).ID); r.Failed != "" {
							t.Error("the run that is on is said to have failed as the one before")
						}
						time.Sleep(10 * time.Minute)
						if got := c.requests(); len(got) != 1 {
							t.Errorf("asked for %q, want no more", got)
						}
					})
				})
			}
		}
	}
}

// TestRestartThatDoesNotComeIsTheEnd: a pod whose containers have ended is over if the restart does not come
// within the service's time for it.
func TestRestartThatDoesNotComeIsTheEnd(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Liveness: byCommand()})
		p, _ := h.start(restarting{c, false}, c.config)
		pod := h.pod("a")
		h.create(p, pod)
		time.Sleep(time.Minute)
		shown(t, p, pod)
		c.asker.finds(t, probing.Result{Started: true, Failed: probing.Liveness})
		c.edit(func() { c.vms[0].over = true })
		for _, want := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded} {
			time.Sleep(75 * time.Second)
			if got := shown(t, p, pod).Status.Phase; got != want {
				t.Errorf("the pod is %s, want %s", got, want)
			}
		}
	})
}

// TestPodIsRunningWhileTheAnswerToARestartIsLateOrLost: the service has ended the container and may still start
// it again, so the pod stays Running.
func TestPodIsRunningWhileTheAnswerToARestartIsLateOrLost(t *testing.T) {
	for name, tt := range map[string]struct {
		slow time.Duration
		at   int // when the service shows the end of the container, in seconds
		sent int
	}{"late": {12 * time.Second, 1, 1}, "lost": {time.Minute, 13, 0}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
				c := newClinic(h, Probes{Liveness: byCommand()})
				p, _ := h.start(restarting{c, false}, c.config)
				pod := h.pod("a")
				h.create(p, pod)
				time.Sleep(time.Minute)
				shown(t, p, pod)
				c.edit(func() { c.slow = tt.slow })
				c.asker.finds(t, probing.Result{Started: true, Failed: probing.Liveness})
				for s := range 40 {
					time.Sleep(time.Second)
					if s == tt.at {
						c.edit(func() { c.vms[0].over = true })
						p.Cache().Hurry()
					}
					if got := shown(t, p, pod).Status; got.Phase != corev1.PodRunning {
						t.Fatalf("after %d s the pod is %s; requests %q", s+1, got.Phase, c.requests())
					}
				}
				if got := c.requests(); len(got) != tt.sent {
					t.Errorf("the service has taken %q, want %d: the end of the container does not cancel its restart", got, tt.sent)
				}
			})
		})
	}
}

// TestRefusedRestartIsTheEnd: the containers end while the service has the restart request. The pod is Running
// until the service refuses the request, and over afterwards.
func TestRefusedRestartIsTheEnd(t *testing.T) {
	for name, refusal := range map[string]error{
		"not found": errdefs.NotFound("no such instance"), "invalid": errdefs.InvalidInput("it cannot restart"), "nothing done": NotMade(errors.New("busy")),
		"throttled": errdefs.RetryAfter(errors.New("too many requests"), 20*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
				c := newClinic(h, Probes{Liveness: byCommand()})
				p, _ := h.start(restarting{c, false}, c.config)
				pod := h.pod("a")
				h.create(p, pod)
				time.Sleep(time.Minute)
				shown(t, p, pod)
				c.edit(func() { c.slow, c.fails = 10*time.Second, refusal })
				c.asker.finds(t, probing.Result{Started: true, Failed: probing.Liveness})
				c.edit(func() { c.vms[0].over = true })
				p.Cache().Hurry()
				for _, want := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded} {
					time.Sleep(6 * time.Second)
					if got := shown(t, p, pod).Status.Phase; got != want {
						t.Errorf("the pod is %s, want %s; requests %q", got, want, c.requests())
					}
				}
			})
		})
	}
}

// TestContainerThatFailsAgainIsRestartedLessOften: repeated restarts have a growing back-off, as at a kubelet.
func TestContainerThatFailsAgainIsRestartedLessOften(t *testing.T) {
	for _, between := range []string{"", "waits"} {
		bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
			c := newClinic(h, Probes{Liveness: byCommand()})
			c.between = between
			p, _ := h.start(restarting{c, true}, c.config)
			h.create(p, h.pod("a"))
			time.Sleep(time.Minute)
			begin := time.Now()
			var waits []time.Duration
			for range 8 {
				failed, n := time.Now(), len(c.requests())
				c.asker.finds(t, probing.Result{Started: true, Failed: probing.Liveness})
				for len(c.requests()) == n && time.Since(failed) < time.Hour {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				waits = append(waits, time.Since(failed))
				time.Sleep(5 * time.Second)
				p.Cache().Refresh(p.Cache().All()[0].UID)
			}
			if total := time.Since(begin); waits[0] > time.Second || waits[7] < 4*time.Minute || total > 30*time.Minute {
				t.Errorf("the restarts waited for %s", waits)
			}
		})
	}
}

// TestPodThatIsDeletedIsNotRestartedByItsProbes: a deleted pod is not restarted, even if the restart already
// waits for its back-off or for the service.
func TestPodThatIsDeletedIsNotRestartedByItsProbes(t *testing.T) {
	for name, throttled := range map[string]bool{"back-off": false, "throttled": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
				c := newClinic(h, Probes{Liveness: byCommand()})
				p, _ := h.start(restarting{c, true}, c.config)
				pod := h.pod("a")
				h.create(p, pod)
				time.Sleep(time.Minute)
				failed := probing.Result{Started: true, Failed: probing.Liveness}
				if throttled {
					c.edit(func() { c.fails = errdefs.RetryAfter(errors.New("too many requests"), 20*time.Second) })
				} else {
					c.asker.finds(t, failed)
					time.Sleep(5 * time.Second)
					p.Cache().Refresh(pod.UID)
				}
				c.asker.finds(t, failed)
				if got := c.requests(); len(got) != 1 {
					t.Fatalf("asked for %q, want one restart before the wait", got)
				}
				events := len(c.events())
				c.edit(func() { c.stop = func(vm) error { return nil } })
				pod = pod.DeepCopy()
				pod.DeletionTimestamp = new(metav1.Now())
				if err := p.DeletePod(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
				if got := c.requests(); len(got) != 1 {
					t.Errorf("asked for %q, after %d events also recorded %q, want nothing for a pod that is being deleted", got[1:], events, c.events())
				}
			})
		})
	}
}

// TestSilenceOfTheServiceIsNoFailure: a probe that fails while the service does not answer may have failed
// because of this process's network. The provider does not act, and judges the container anew.
func TestSilenceOfTheServiceIsNoFailure(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Liveness: byCommand()})
		p, _ := h.start(restarting{c, true}, c.config)
		pod := h.pod("a")
		h.create(p, pod)
		time.Sleep(time.Minute)
		failed := probing.Result{Started: true, Failed: probing.Liveness}

		c.edit(func() { c.dark = true })
		time.Sleep(time.Minute)
		c.asker.finds(t, failed)
		c.edit(func() { c.dark = false })
		time.Sleep(5 * time.Minute)
		if got := c.requests(); len(got) != 0 || c.asker.judged() != 2 {
			t.Errorf("lists failed: asked for %q, and judged %d times, want 2", got, c.asker.judged())
		}

		c.edit(func() { c.slow = time.Minute })
		c.asker.finds(t, failed)
		time.Sleep(5 * time.Minute)
		c.edit(func() { c.slow = 0 })
		if got := c.requests(); len(got) != 0 || c.asker.judged() != 3 {
			t.Errorf("the request was not answered: asked for %q, and judged %d times, want 3", got, c.asker.judged())
		}

		c.edit(func() { c.fails = errdefs.RetryAfter(errors.New("too many requests"), 20*time.Second) })
		c.asker.finds(t, failed)
		time.Sleep(30 * time.Second)
		c.edit(func() { c.fails = nil })
		time.Sleep(time.Minute)
		if got := c.requests(); len(got) != 3 || c.asker.judged() != 4 {
			t.Errorf("throttled: asked for %q, want it again until it succeeds; judged %d times", got, c.asker.judged())
		}
	})
}

// TestProbesEndWithTheProvider: all probes end with the provider, even while a restart is awaited. The probes of
// a pod end when the pod is gone.
func TestProbesEndWithTheProvider(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Liveness: byCommand()})
		p, stop := h.start(c, c.config)
		a, b := h.pod("a"), h.pod("b")
		h.create(p, a)
		h.create(p, b)
		time.Sleep(time.Minute)
		h.delete(p, a)
		time.Sleep(20 * time.Second)
		if n, runs := c.asker.count(); n != 1 || runs != 1 {
			t.Errorf("%d containers are probed by %d runs, want one by one", n, runs)
		}
		c.edit(func() { c.slow = time.Hour })
		c.asker.finds(t, probing.Result{Failed: probing.Liveness})
		stop() // the bubble finds a goroutine that is left
		if _, runs := c.asker.count(); runs != 0 {
			t.Error("the probes run on")
		}
	})
}

// TestExecOfAProbe: the time limit of a command starts with the command. A command that cannot be run is not a
// failed probe.
func TestExecOfAProbe(t *testing.T) {
	for name, tt := range map[string]struct {
		exec func(ctx context.Context, attach api.AttachIO) error
		want string
		took time.Duration
	}{
		"well": {func(_ context.Context, a api.AttachIO) error {
			_, err := a.Stdout().Write([]byte(strings.Repeat("x", 20<<10)))
			return err
		}, "10240 <nil>", 0},
		"exit code": {func(_ context.Context, a api.AttachIO) error {
			return fmt.Errorf("session: %w", utilexec.CodeExitError{Err: errors.New("exit 3"), Code: 3})
		}, "0 session: exit 3 code", 0},
		"slow session": {func(_ context.Context, a api.AttachIO) error {
			time.Sleep(20 * time.Second)
			Begun(a)
			time.Sleep(2 * time.Second)
			return nil
		}, "0 <nil>", 22 * time.Second},
		"no session": {func(ctx context.Context, _ api.AttachIO) error {
			<-ctx.Done()
			return ctx.Err()
		}, "0 the command did not begin within 30s", 30 * time.Second},
		"hangs": {func(ctx context.Context, a api.AttachIO) error {
			time.Sleep(10 * time.Second)
			Begun(a)
			<-ctx.Done()
			return ctx.Err()
		}, "0 context deadline exceeded deadline", 13 * time.Second},
		"the service is late": {func(context.Context, api.AttachIO) error {
			return fmt.Errorf("open the session: %w", context.DeadlineExceeded)
		}, "0 open the session: context deadline exceeded", 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
				c := newClinic(h, Probes{Liveness: byCommand()})
				c.exec = tt.exec
				p, _ := h.start(c, c.config)
				h.create(p, h.pod("a"))
				synctest.Wait()
				begin := time.Now()
				out, _, err := c.asker.config.Exec(t.Context(), c.asker.target(t).ID, []string{"ask"}, 3*time.Second)
				got := fmt.Sprint(len(out), " ", err)
				var exit utilexec.ExitError
				if errors.As(err, &exit) {
					got += " code"
				}
				if errors.Is(err, context.DeadlineExceeded) {
					got += " deadline"
				}
				if took := time.Since(begin); got != tt.want || took != tt.took {
					t.Errorf("got %q after %s, want %q after %s", got, took, tt.want, tt.took)
				}
			})
		})
	}
}

// TestExecProbesAreAsSeldomAsTheConfigurationSays: ExecProbeEvery is the shortest period of exec probes. The pod
// and its network probes do not change.
func TestExecProbesAreAsSeldomAsTheConfigurationSays(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		often := func(p *corev1.Probe) { p.PeriodSeconds = 2 }
		seldom := func(p *corev1.Probe) { p.PeriodSeconds = 60 }
		tcp := func(p *corev1.Probe) { p.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}} }
		c := newClinic(h, Probes{Startup: byCommand(often), Liveness: byCommand(seldom), Readiness: byCommand(often, tcp)})
		p, _ := h.start(c, c.config, func(config *Config) { config.ExecProbeEvery = 30 * time.Second })
		h.create(p, h.pod("a"))
		k := c.asker.target(t).Container
		if first := k.StartupProbe.InitialDelaySeconds; first != 2 || k.LivenessProbe.InitialDelaySeconds != 0 {
			t.Errorf("the first startup probe comes after %d s, want it as early as the pod says", first)
		}
		if k.StartupProbe.PeriodSeconds != 30 || k.LivenessProbe.PeriodSeconds != 60 || k.ReadinessProbe.PeriodSeconds != 2 || c.lacking.Startup.PeriodSeconds != 2 {
			t.Errorf("periods %d, %d and %d, that of the pod %d", k.StartupProbe.PeriodSeconds, k.LivenessProbe.PeriodSeconds, k.ReadinessProbe.PeriodSeconds, c.lacking.Startup.PeriodSeconds)
		}
	})
}

// TestContainerIsNotTakenBackByARestartOfTheNode: after a restart of the process, the probes know that the
// container was ready. The container stays ready until the first new result.
func TestContainerIsNotTakenBackByARestartOfTheNode(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		c := newClinic(h, Probes{Readiness: byCommand()})
		p, stop := h.start(c, c.config)
		pod := h.pod("a")
		h.create(p, pod)
		if c.asker.target(t).Earlier {
			t.Error("a new container is said to be of before")
		}
		c.asker.finds(t, probing.Result{Started: true, Ready: true})
		if err := h.pods.Update(shown(t, p, pod)); err != nil {
			t.Fatal(err)
		}
		stop()
		time.Sleep(time.Minute)
		p, _ = h.start(c, c.config)
		shown(t, p, pod)
		target := c.asker.target(t)
		if s := StateOf(target.Pod, "main"); !target.Earlier || s == nil || !s.Ready {
			t.Errorf("the probes are told %+v, earlier %t", s, target.Earlier)
		}
	})
}
