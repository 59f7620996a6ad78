// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// restartMargin distinguishes containers that are older than the Prober: they started at least that much earlier.
const restartMargin = 10 * time.Second

// container is the known state of a container.
type container struct {
	target Target
	old    bool // the container is older than the Prober
	probes []*probe

	starting bool // the startup probe has not succeeded yet
	started  bool // the startup probe has succeeded, or there is none
	ready    bool // the readiness probe succeeds, or there is none
	failed   *probe
}

// probe is one probe of a container.
type probe struct {
	of     *container
	kind   Kind
	spec   *corev1.Probe
	counts counts

	due    time.Time          // of the next run; zero before the first run is scheduled
	place  int                // position in the queue, from 1; 0 means not queued
	cancel context.CancelFunc // ends the current run

	last outcome
	row  int // number of equal outcomes in a row
}

func (w *probe) isQueued() bool { return w.place > 0 }

func (w *probe) period() time.Duration { return secondsOr(w.spec.PeriodSeconds, 10) }

func (w *probe) timeout() time.Duration { return secondsOr(w.spec.TimeoutSeconds, 1) }

// secondsOr returns n, or the default of the API for an unset n.
func secondsOr(n, unset int32) time.Duration {
	if n <= 0 {
		n = unset
	}
	return time.Duration(n) * time.Second
}

func newContainer(t Target, begin time.Time, m *probeMetrics) *container {
	c := &container{target: t, started: true, ready: true}
	c.old = t.Earlier || !t.StartedAt.IsZero() && t.StartedAt.Before(begin.Add(-restartMargin))
	if t.StartedAt.IsZero() {
		c.target.StartedAt = time.Now()
	}
	for _, w := range []probe{
		{kind: Startup, spec: t.Container.StartupProbe},
		{kind: Liveness, spec: t.Container.LivenessProbe},
		{kind: Readiness, spec: t.Container.ReadinessProbe},
	} {
		if w.spec != nil {
			w.of = c
			w.counts = m.countsOf(t, w.kind)
			c.probes = append(c.probes, &w)
		}
	}
	c.starting = t.Container.StartupProbe != nil
	c.started = !c.starting
	c.ready = t.Container.ReadinessProbe == nil
	if c.old {
		c.recallState()
	}
	return c
}

// updateTarget stores newer data of the container. Its start time does not change.
func (c *container) updateTarget(t Target) {
	t.StartedAt = c.target.StartedAt
	c.target = t
}

// recallState restores the state from before the start of the Prober. A container without a known state counts as started, unless its startup probe
// has to run.
func (c *container) recallState() {
	pod := c.target.Pod
	known := statusOf(pod, c.target.ID)
	switch {
	case !c.starting:
	case known == nil || known.Started == nil:
		c.started = true
	case *known.Started:
		c.started, c.starting = true, false
	}
	if c.ready {
		return
	}
	if known != nil {
		c.ready = known.Ready
		return
	}
	c.ready = slices.ContainsFunc(pod.Status.Conditions, func(cond corev1.PodCondition) bool {
		return cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue
	})
}

// statusOf returns the status of a container instance, or nil if the pod's status has another instance or none.
func statusOf(pod *corev1.Pod, id string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if strings.HasSuffix(list[i].ContainerID, "://"+id) {
				return &list[i]
			}
		}
	}
	return nil
}

func (c *container) isTerminating() bool {
	return c.target.Terminating || c.target.Pod.DeletionTimestamp != nil
}

func (c *container) currentResult() Result {
	r := Result{Started: c.started && c.target.Running}
	r.Ready = r.Started && c.ready
	if c.failed != nil {
		r.Failed, r.Grace = c.failed.kind, c.failed.spec.TerminationGracePeriodSeconds
	}
	return r
}

// wantsProbe reports whether a probe must run.
func (c *container) wantsProbe(w *probe) bool {
	if !c.target.Running {
		return false
	}
	switch w.kind {
	case Startup:
		return c.starting && c.failed == nil && !c.isTerminating()
	case Liveness:
		return c.started && c.failed == nil && !c.isTerminating()
	default:
		return c.started
	}
}

// firstRun returns the time of a new probe's first run. A readiness probe runs at once, because other components wait for it.
func (c *container) firstRun(w *probe, now time.Time) time.Time {
	delay := time.Duration(w.spec.InitialDelaySeconds) * time.Second
	earliest := c.target.StartedAt.Add(delay)
	switch {
	case w.kind == Readiness && c.old && c.ready:
		earliest = now // the container was ready before, so its delay has passed
	case w.kind == Readiness:
	case w.kind == Liveness && c.target.Container.StartupProbe != nil:
		earliest = laterOf(earliest, now.Add(w.period()))
	case delay == 0:
		earliest = earliest.Add(w.period())
	}
	return laterOf(earliest, now)
}

// countOutcome counts an outcome, and changes the state of the container at the threshold.
func (c *container) countOutcome(w *probe, o outcome) {
	good := o == success || o == warning
	if o = failure; good {
		o = success
	}
	if w.last == o {
		w.row++
	} else {
		w.last, w.row = o, 1
	}
	threshold := w.spec.FailureThreshold
	if good {
		threshold = w.spec.SuccessThreshold
	}
	if w.row < int(threshold) {
		return
	}
	switch {
	case w.kind == Readiness:
		c.ready = good
	case !good:
		c.failed = w
		c.started = c.started && w.kind != Startup
	case w.kind == Startup:
		c.starting, c.started = false, true
	}
}

// series identifies the metrics of a container.
type series struct {
	pod  types.UID
	name string
}

func (c *container) seriesKey() series { return series{c.target.Pod.UID, c.target.Container.Name} }
