// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// Check tests one promise of every provider.
type Check struct {
	// Name is area/promise, in lower case.
	Name string
	// Why describes the problem for users if the promise does not hold.
	Why string
	// Needs are the required features. The check is skipped if one is not declared. A passed check proves the features that it needs.
	Needs []capability.Feature
	// Alone means that no other check may run at the same time.
	Alone bool
	// Run tests it.
	Run func(*C)
}

// Outcome is the outcome of a check.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Result is the result of a check.
type Result struct {
	Name    string               `json:"name"`
	Why     string               `json:"why"`
	Needs   []capability.Feature `json:"needs,omitempty"`
	Outcome Outcome              `json:"outcome"`
	// Detail is the failure, or the reason why the check was skipped.
	Detail string        `json:"detail,omitempty"`
	Took   time.Duration `json:"took"`
	// Left are pods of the check that may still be at the backend, because it did not confirm their end in time,
	// and the reasons.
	Left []string `json:"left,omitempty"`
	// GivenUp means that a call of the provider did not return in time. Pods that the call creates later are not removed.
	GivenUp bool `json:"givenUp,omitempty"`
	// Log has the log lines of the check.
	Log []string `json:"-"`
}

// C is a running check, as testing.T is a test. Only the goroutine of the check may call its methods, except for
// Logf and Errorf.
type C struct {
	h        Harness
	outer    context.Context // ends when the run is interrupted
	ctx      context.Context
	ns       string
	backend  *Backend
	env      Env
	objects  *objects
	node     *session // the open provider
	restarts bool     // the backend starts each ended container again
	cleanups []func()

	mu       sync.Mutex
	failures []string // guarded by mu
	notes    []string // guarded by mu
	left     []string // guarded by mu
	givenUp  bool     // guarded by mu
	skipped  string   // set by the goroutine of the check
}

// Context returns a context with the lifetime of the check. It also ends when the time of the check is over.
func (c *C) Context() context.Context { return c.ctx }

// Namespace returns the namespace of the pods of the check.
func (c *C) Namespace() string { return c.ns }

// Logf records a log line.
func (c *C) Logf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// Errorf records a failure; the check continues. After an interruption it only logs the failure, because the interruption may be the cause.
func (c *C) Errorf(format string, args ...any) {
	if c.outer.Err() != nil {
		c.Logf("after the interruption: "+format, args...)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}

// Fatalf calls Errorf and ends the check.
func (c *C) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	runtime.Goexit()
}

// Skipf skips the rest of the check, with the reason why it is impossible here.
func (c *C) Skipf(format string, args ...any) {
	c.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// addCleanup registers f for the end of the check; the last registered function runs first.
func (c *C) addCleanup(f func()) { c.cleanups = append(c.cleanups, f) }

// interrupted is the detail of unfinished checks.
const interrupted = "the run was interrupted"

// run runs the check in its own goroutine, so that the check can be abandoned. When outer ends, the check still has time to remove its
// pods.
func (k Check) run(outer context.Context, h Harness, declared *capability.Declaration, namespace string) Result {
	begin := time.Now()
	r := Result{Name: k.Name, Why: k.Why, Needs: k.Needs, Outcome: Passed}
	if why, ok := h.Except[k.Name]; ok {
		r.Outcome, r.Detail = Skipped, why
		return r
	}
	limit := 4 * h.Patience
	ctx, cancel := context.WithTimeout(outer, limit)
	defer cancel()
	c := &C{h: h, outer: outer, ctx: ctx, ns: namespace, objects: newObjects(namespace)}
	c.restarts = declared != nil && !declared.Has(capability.RunToCompletion)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				c.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		defer c.close()
		c.openBackend()
		k.Run(c)
	}()
	hangs := time.NewTimer(limit + h.Patience)
	defer hangs.Stop()
	select {
	case <-done:
	case <-outer.Done():
		hangs.Reset(3 * h.Patience)
		select {
		case <-done:
		case <-hangs.C:
			c.giveUp()
		}
	case <-hangs.C:
		c.giveUp()
	}
	r.Took = time.Since(begin)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Log, r.Left, r.GivenUp = slices.Clone(c.notes), slices.Clone(c.left), c.givenUp
	switch {
	case len(c.failures) > 0:
		r.Outcome, r.Detail = Failed, strings.Join(c.failures, "\n")
	case outer.Err() != nil:
		r.Outcome, r.Detail = Skipped, interrupted
	case c.skipped != "":
		r.Outcome, r.Detail = Skipped, c.skipped
	}
	return r
}

// giveUp abandons a check with a hanging provider call, and the pods of the check.
func (c *C) giveUp() {
	c.Errorf("a call of the provider hangs: its context ended %s ago", c.h.Patience)
	c.mu.Lock()
	c.givenUp = true
	c.mu.Unlock()
	for _, pod := range c.objects.recordedPods() {
		c.recordLeft(pod, "a call of the provider hangs")
	}
}

// recordLeft records that a pod may still exist.
func (c *C) recordLeft(pod *corev1.Pod, why string) {
	c.Logf("pod %s is left at the backend: %s", pod.Name, why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = append(c.left, fmt.Sprintf("%s/%s (UID %s): %s", pod.Namespace, pod.Name, pod.UID, why))
}

// close ends all work of the check, even after giveUp.
func (c *C) close() {
	for _, f := range slices.Backward(c.cleanups) {
		func() {
			defer func() {
				if v := recover(); v != nil {
					c.Errorf("panic at the end: %v\n%s", v, debug.Stack())
				}
			}()
			f()
		}()
	}
}
