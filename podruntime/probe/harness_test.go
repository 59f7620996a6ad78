// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/exec"
)

// world is a Prober in a bubble. A script gives the results of its exec probes.
type world struct {
	t     *testing.T
	p     *Prober
	start time.Time

	mu      sync.Mutex
	answer  map[string]func() error // by the command's only argument
	runs    []string                // "5s liveness"
	events  []string
	changes int
}

// inBubble runs a test in fake time, with a running Prober.
func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.begin()
		test(w)
	})
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, start: time.Now(), answer: map[string]func() error{}}
	w.p = New(Config{Exec: w.exec, Changed: w.changed, Event: w.event})
	w.p.jitter = func() float64 { return 0.5 }
	return w
}

func (w *world) begin() {
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(w.t.Context())
	go func() {
		defer close(done)
		w.p.Run(ctx)
	}()
	w.t.Cleanup(func() { cancel(); <-done })
}

func (w *world) exec(_ context.Context, _ string, cmd []string, _ time.Duration) (stdout, stderr []byte, err error) {
	w.mu.Lock()
	w.runs = append(w.runs, fmt.Sprintf("%s %s", time.Since(w.start), cmd[0]))
	answer := w.answer[cmd[0]]
	w.mu.Unlock()
	if answer == nil {
		return nil, nil, nil
	}
	return []byte("said"), nil, answer()
}

func (w *world) changed(types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
}

func (w *world) event(_ *corev1.Pod, container, eventType, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, container+" "+eventType+" "+reason+" "+message)
}

// answers makes a command succeed (nil) or fail from now on.
func (w *world) answers(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer[name] = func() error { return err }
}

var (
	errExit    = exec.CodeExitError{Err: errors.New("exit 1"), Code: 1}
	errRuntime = errors.New("the runtime is away")
)

// after waits until the time d has passed since the beginning of the test.
func (w *world) after(d time.Duration) {
	w.t.Helper()
	time.Sleep(d - time.Since(w.start))
	synctest.Wait()
}

func (w *world) wantRuns(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := slices.Sorted(slices.Values(w.runs)) // runs at the same time may have any order
	if slices.Sort(want); !slices.Equal(got, want) {
		w.t.Errorf("at %s: ran %q, want %q", time.Since(w.start), got, want)
	}
}

func (w *world) want(id, want string) {
	w.t.Helper()
	r, ok := w.p.Result(id)
	got := fmt.Sprintf("started=%t ready=%t failed=%s", r.Started, r.Ready, r.Failed)
	if !ok {
		got = "unknown"
	}
	if got != want {
		w.t.Errorf("at %s: %s is %s, want %s", time.Since(w.start), id, got, want)
	}
}

// execProbe returns a probe with name as its command, a period of 10 s, a failure threshold of 3 and a success
// threshold of 1.
func execProbe(name string, change ...func(*corev1.Probe)) *corev1.Probe {
	p := &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{name}}},
		PeriodSeconds: 10, TimeoutSeconds: 1, FailureThreshold: 3, SuccessThreshold: 1,
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func delay(s int32) func(*corev1.Probe)   { return func(p *corev1.Probe) { p.InitialDelaySeconds = s } }
func period(s int32) func(*corev1.Probe)  { return func(p *corev1.Probe) { p.PeriodSeconds = s } }
func succeed(n int32) func(*corev1.Probe) { return func(p *corev1.Probe) { p.SuccessThreshold = n } }
func fail(n int32) func(*corev1.Probe)    { return func(p *corev1.Probe) { p.FailureThreshold = n } }

// running returns a container that has just been started.
func running(id string, change ...func(*corev1.Container)) Target {
	c := &corev1.Container{Name: "app"}
	for _, f := range change {
		f(c)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid"}}
	return Target{Pod: pod, Container: c, ID: id, PodIPs: []string{"127.0.0.1"}, StartedAt: time.Now(), Running: true}
}

func startup(p *corev1.Probe) func(*corev1.Container) {
	return func(c *corev1.Container) { c.StartupProbe = p }
}

func liveness(p *corev1.Probe) func(*corev1.Container) {
	return func(c *corev1.Container) { c.LivenessProbe = p }
}

func readiness(p *corev1.Probe) func(*corev1.Container) {
	return func(c *corev1.Container) { c.ReadinessProbe = p }
}
