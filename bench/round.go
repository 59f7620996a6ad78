// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// round is the result of one agent for one life of all pods.
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
	AgentCPUMillis    float64  `json:"agentCPUMillisPerPod"`          // until the last request, so with all events
	AgentPromptMillis float64  `json:"agentCPUMillisPerPodUntilGone"` // without the work that follows later
	ClusterCPUMillis  float64  `json:"clusterCPUMillisPerPod"`
	ClientCPUMillis   float64  `json:"clientCPUMillisPerPod"`
	AgentPeakMiB      float64  `json:"agentPeakMemoryMiB"`
	AgentAddedMiB     float64  `json:"agentAddedMemoryMiB"` // the peak until the end of the time at rest, less the memory before the first pod
	Requests          requests `json:"requests"`            // of all pod lives, the time at rest apart
	WritesPerPod      float64  `json:"podWritesPerPod"`
	EventsPerPod      float64  `json:"eventsPerPod"`
	WatchResumed      float64  `json:"clientWatchResumed"`
	LoadBefore        float64  `json:"loadAverageBefore"`
	Rest              *resting `json:"rest,omitempty"`   // measured in the first round, with a second cluster or another backend in all
	Remote            *remote  `json:"remote,omitempty"` // nil: the pods run nowhere else
}

// resting is the time with all pods Running and no work.
type resting struct {
	Seconds    float64  `json:"seconds"`
	Requests   requests `json:"requests"`
	PerMinute  float64  `json:"requestsPerMinute"`
	CPUPercent float64  `json:"cpuPercent"` // of one core
}

// mark is a moment, and the CPU time of all processes until then.
type mark struct {
	at   time.Time
	used cpu
}

// marks are the moments of a life. Without a time at rest, three of them are the same moment. resumed differs
// only if pods end at rest.
type marks struct{ begin, running, settled, rested, resumed, gone, end mark }

// runRound lets all pods of the scenario live once, with one process of the agent. With atRest, the agent is
// watched at rest too.
func runRound(ctx context.Context, m *machine, s scenario, a agent, prefix string, atRest bool) (r *round, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.timeout+m.cfg.idleOf(s)+s.pacedTime(m.cfg), fmt.Errorf("not done within -timeout %s", m.cfg.timeout))
	defer cancel()
	r = &round{}
	if r.LoadBefore, err = readLoad(); err != nil {
		return nil, err
	}
	l, err := beginLife(ctx, m, s, a, prefix)
	if err != nil {
		return nil, err
	}
	defer l.end()
	if err := r.runPods(ctx, l, atRest); err != nil {
		return nil, err
	}
	if err := writeProfiles(ctx, l.agent, restProfile); err != nil {
		return nil, err
	}
	l.end()
	return r, m.dropNodes(ctx)
}

// runPods runs the pods through their life.
func (r *round) runPods(ctx context.Context, l *life, atRest bool) (err error) {
	log := l.machine.audit
	var at marks
	var up, down phase
	take := func(m *mark) func() error {
		return func() (err error) {
			m.at = time.Now()
			m.used, err = l.cpuUsage()
			return err
		}
	}
	quiet := func() error {
		if low := l.agent.lower; low != nil {
			if err := low.audit.awaitQuiet(ctx, quietLimit); err != nil {
				return err
			}
		}
		if l.agent.backend != nil { // some agents send requests for ever: that is their load at rest
			if err := log.awaitQuiet(ctx, slowAfter); !errors.Is(err, errRestless) {
				return err
			}
			return nil
		}
		return log.awaitQuiet(ctx, quietLimit)
	}
	measureMemory := func(of func(pid int) (int64, error), into *int64) func() error {
		return func() (err error) {
			*into, err = of(l.agent.processID())
			return err
		}
	}
	var before, most int64
	heap := func() error { return writeProfiles(ctx, l.agent, heapProfile) }
	steps := []func() error{
		func() error { return waitFor(ctx, l.scenario.Settle) }, quiet, measureMemory(residentMemory, &before), take(&at.begin),
		func() (err error) { up, err = l.createAll(ctx); return err },
		take(&at.running),
	}
	if atRest {
		if l.agent.backend != nil { // for a while it gets more requests
			steps = append(steps, func() error { return waitFor(ctx, slowAfter) })
		}
		steps = append(steps, quiet, heap, take(&at.settled), func() error { return waitFor(ctx, l.machine.cfg.idleOf(l.scenario)) })
	} else {
		steps = append(steps, heap, take(&at.settled))
	}
	steps = append(steps, take(&at.rested), measureMemory(peakMemory, &most), func() error { return l.endSomePods(ctx) }, take(&at.resumed),
		func() (err error) { down, err = l.deleteAll(ctx); return err },
		take(&at.gone), quiet, take(&at.end))
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	peak, err := l.agent.peakMemory()
	if err != nil {
		return err
	}
	r.AgentPeakMiB, r.AgentAddedMiB = float64(peak)/(1<<20), float64(most-before)/(1<<20)
	r.WatchResumed = float64(l.tracker.resumed.Load())
	r.setTimes(up, down)
	r.setCosts(log, at, float64(l.scenario.Pods))
	if atRest {
		r.setRest(log, at.settled, at.rested)
	}
	if err := r.setBackend(ctx, l, at, up, down); err != nil {
		return err
	}
	return r.setRemote(ctx, l, at, up, down)
}

func (r *round) setTimes(up, down phase) {
	r.CreatedSeconds, r.RunningSeconds, r.RunningLagSeconds = up.clientTime().Seconds(), up.totalTime().Seconds(), up.lagTime().Seconds()
	r.MarkedSeconds, r.GoneSeconds, r.GoneLagSeconds = down.clientTime().Seconds(), down.totalTime().Seconds(), down.lagTime().Seconds()
	running, gone := up.perPod(), down.perPod()
	r.RunningP50Millis, r.RunningP99Millis = inMillis(percentileOf(running, 50)), inMillis(percentileOf(running, 99))
	r.GoneP50Millis, r.GoneP99Millis = inMillis(percentileOf(gone, 50)), inMillis(percentileOf(gone, 99))
}

// setCosts counts the usage; the time at rest is counted separately.
func (r *round) setCosts(log *audit, at marks, pods float64) {
	r.Requests = log.countRequests(at.begin.at, at.settled.at)
	r.Requests.add(log.countRequests(at.resumed.at, at.end.at))
	r.WritesPerPod = float64(r.Requests.podWrites()) / pods
	r.EventsPerPod = float64(r.Requests.countEvents()) / pods
	each := func(up, down mark, of func(cpu) time.Duration) float64 {
		return inMillis(of(up.used)-of(at.begin.used)+of(down.used)-of(at.resumed.used)) / pods
	}
	agent := func(c cpu) time.Duration { return c.agent }
	r.AgentCPUMillis = each(at.settled, at.end, agent)
	r.AgentPromptMillis = each(at.running, at.gone, agent)
	r.ClusterCPUMillis = each(at.settled, at.end, func(c cpu) time.Duration { return c.cluster })
	r.ClientCPUMillis = each(at.settled, at.end, func(c cpu) time.Duration { return c.client })
}

func (r *round) setRest(log *audit, from, to mark) {
	seconds := to.at.Sub(from.at).Seconds()
	made := log.countRequests(from.at, to.at)
	r.Rest = &resting{
		Seconds: seconds, Requests: made, PerMinute: float64(made.countAll()) / seconds * 60,
		CPUPercent: 100 * (to.used.agent - from.used.agent).Seconds() / seconds,
	}
}

// cpu returns the CPU time of all processes so far.
type cpu struct {
	agent, cluster, client time.Duration
	all                    time.Duration // of the agent and all that it needs for its pods; 0 without containers
}

func (l *life) cpuUsage() (c cpu, err error) {
	if c.agent, err = l.agent.cpuTime(); err != nil {
		return c, fmt.Errorf("read CPU time of %s: %w", l.agent.name, err)
	}
	if c.cluster, err = cpuTime(l.machine.processID()); err != nil {
		return c, fmt.Errorf("read CPU time of the cluster: %w", err)
	}
	if l.agent.account != nil {
		if c.all, err = l.agent.account.cpuTime(); err != nil {
			return c, fmt.Errorf("of all processes of %s: %w", l.agent.name, err)
		}
	}
	c.client, err = cpuTime(os.Getpid())
	return c, err
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// waitFor waits for d, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
