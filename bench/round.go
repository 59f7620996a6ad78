// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// round is what one agent made of one life of all pods.
type round struct {
	CreatedSeconds    float64  `json:"allCreatedSeconds"`
	RunningSeconds    float64  `json:"allRunningSeconds"`
	RunningLagSeconds float64  `json:"runningLagSeconds"`
	RunningP50Millis  float64  `json:"createToRunningP50Millis"`
	RunningP99Millis  float64  `json:"createToRunningP99Millis"`
	MarkedSeconds     float64  `json:"allDeletedMarkedSeconds"`
	GoneSeconds       float64  `json:"allGoneSeconds"`
	GoneLagSeconds    float64  `json:"goneLagSeconds"`
	GoneP50Millis     float64  `json:"deleteToGoneP50Millis"`
	GoneP99Millis     float64  `json:"deleteToGoneP99Millis"`
	AgentCPUMillis    float64  `json:"agentCPUMillisPerPod"` // until the last request, so with all events
	ClusterCPUMillis  float64  `json:"clusterCPUMillisPerPod"`
	ClientCPUMillis   float64  `json:"clientCPUMillisPerPod"`
	AgentPeakMiB      float64  `json:"agentPeakMemoryMiB"`
	Requests          requests `json:"requests"` // of all pod lives, the time at rest apart
	WritesPerPod      float64  `json:"podWritesPerPod"`
	EventsPerPod      float64  `json:"eventsPerPod"`
	WatchResumed      float64  `json:"clientWatchResumed"`
	LoadBefore        float64  `json:"loadAverageBefore"`
	Rest              *resting `json:"rest,omitempty"` // measured in the first round
}

// resting is the time with all pods Running and nothing to do.
type resting struct {
	Seconds    float64  `json:"seconds"`
	Requests   requests `json:"requests"`
	PerMinute  float64  `json:"requestsPerMinute"`
	CPUPercent float64  `json:"cpuPercent"` // of one core
}

// mark is a moment between two phases, and the CPU time that was used until then.
type mark struct {
	at   time.Time
	used cpu
}

// runRound lets all pods of the scenario live once, kept by a process of the agent. With atRest, the agent
// is watched at rest too.
func runRound(ctx context.Context, m *machine, s scenario, a agent, prefix string, atRest bool) (r *round, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.timeout+m.cfg.idle, fmt.Errorf("not done within -timeout %s", m.cfg.timeout))
	defer cancel()
	r = &round{}
	if r.LoadBefore, err = load(); err != nil {
		return nil, err
	}
	l, err := beginLife(ctx, m, s, a, prefix)
	if err != nil {
		return nil, err
	}
	defer l.end()
	if err := r.live(ctx, l, atRest); err != nil {
		return nil, err
	}
	if err := writeProfiles(ctx, l.agent, restProfile); err != nil {
		return nil, err
	}
	l.end()
	return r, m.dropNodes(ctx)
}

// live is the life of the pods.
func (r *round) live(ctx context.Context, l *life, atRest bool) (err error) {
	log := l.machine.audit
	var marks []mark
	take := func() error {
		used, err := l.cpu()
		marks = append(marks, mark{time.Now(), used})
		return err
	}
	quiet := func() error { return log.awaitQuiet(ctx) }
	var up, down phase
	heap := func() error { return writeProfiles(ctx, l.agent, heapProfile) }
	between := []func() error{take, heap, take}
	if atRest {
		rest := func() error { return idle(ctx, l.machine.cfg.idle) }
		between = []func() error{quiet, heap, take, rest, take}
	}
	steps := []func() error{quiet, take, func() (err error) { up, err = l.createAll(ctx); return err }}
	steps = append(steps, between...)
	steps = append(steps, func() (err error) { down, err = l.deleteAll(ctx); return err }, quiet, take)
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	peak, err := peakMemory(l.agent.pid())
	if err != nil {
		return err
	}
	r.AgentPeakMiB = float64(peak) / (1 << 20)
	r.WatchResumed = float64(l.tracker.resumed.Load())
	r.setTimes(up, down)
	r.setCosts(log, marks, float64(l.scenario.Pods))
	if atRest {
		r.setRest(log, marks[1], marks[2])
	}
	return nil
}

func (r *round) setTimes(up, down phase) {
	r.CreatedSeconds, r.RunningSeconds, r.RunningLagSeconds = up.client().Seconds(), up.total().Seconds(), up.lag().Seconds()
	r.MarkedSeconds, r.GoneSeconds, r.GoneLagSeconds = down.client().Seconds(), down.total().Seconds(), down.lag().Seconds()
	running, gone := up.perPod(), down.perPod()
	r.RunningP50Millis, r.RunningP99Millis = millis(percentile(running, 50)), millis(percentile(running, 99))
	r.GoneP50Millis, r.GoneP99Millis = millis(percentile(gone, 50)), millis(percentile(gone, 99))
}

// setCosts counts what was used from the first mark to the second, and from the third to the last.
func (r *round) setCosts(log *audit, marks []mark, pods float64) {
	r.Requests = log.requests(marks[0].at, marks[1].at)
	r.Requests.add(log.requests(marks[2].at, marks[3].at))
	r.WritesPerPod = float64(r.Requests.podWrites()) / pods
	r.EventsPerPod = float64(r.Requests.events()) / pods
	each := func(of func(cpu) time.Duration) float64 {
		return millis(of(marks[1].used)-of(marks[0].used)+of(marks[3].used)-of(marks[2].used)) / pods
	}
	r.AgentCPUMillis = each(func(c cpu) time.Duration { return c.agent })
	r.ClusterCPUMillis = each(func(c cpu) time.Duration { return c.cluster })
	r.ClientCPUMillis = each(func(c cpu) time.Duration { return c.client })
}

func (r *round) setRest(log *audit, from, to mark) {
	seconds := to.at.Sub(from.at).Seconds()
	made := log.requests(from.at, to.at)
	r.Rest = &resting{
		Seconds: seconds, Requests: made, PerMinute: float64(made.sum()) / seconds * 60,
		CPUPercent: 100 * (to.used.agent - from.used.agent).Seconds() / seconds,
	}
}

// cpu is the CPU time that everybody has used so far.
type cpu struct{ agent, cluster, client time.Duration }

func (l *life) cpu() (c cpu, err error) {
	if c.agent, err = cpuTime(l.agent.pid()); err != nil {
		return c, fmt.Errorf("read CPU time of %s: %w", l.agent.name, err)
	}
	if c.cluster, err = cpuTime(l.machine.pid()); err != nil {
		return c, fmt.Errorf("read CPU time of the cluster: %w", err)
	}
	c.client, err = cpuTime(os.Getpid())
	return c, err
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// idle waits for d, or until ctx ends.
func idle(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
