// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// counted is the outcome of the round with an audit log.
type counted struct {
	Requests       requests `json:"requests"`             // of all pod lives, by verb and resource
	RequestsPerPod float64  `json:"requestsPerPod"`       // all of them
	WritesPerPod   float64  `json:"podWritesPerPod"`      // those that write pods
	EventsPerPod   float64  `json:"eventsPerPod"`         // those that write events
	AgentCPUMillis float64  `json:"agentCPUMillisPerPod"` // until the last event was sent
	AgentPeakMiB   float64  `json:"agentPeakMemoryMiB"`
	RunningLag     float64  `json:"runningLagSeconds"`  // with the audit log in the way
	EventsTrail    float64  `json:"eventsTrailSeconds"` // how long requests went on after all pods were Running

	// the time with all pods Running and nothing to do
	IdleSeconds    float64  `json:"idleSeconds"`
	IdleRequests   requests `json:"idleRequests"`
	IdlePerMinute  float64  `json:"idleRequestsPerMinute"`
	IdleCPUPercent float64  `json:"idleCPUPercent"` // of one core
}

// runCounted lets all pods live once more, in a cluster that writes an audit log, with an
// idle time in between.
func runCounted(ctx context.Context, cfg config, a agent) (r counted, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.timeout+cfg.idle, fmt.Errorf("not done within -timeout %s", cfg.timeout))
	defer cancel()
	base, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return r, fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(base)
	log, flags, err := prepareAudit(base)
	if err != nil {
		return r, err
	}
	c, err := startCluster(ctx, cfg, base, flags...)
	if err != nil {
		return r, err
	}
	defer c.stop()
	l, err := beginLife(ctx, cfg, c, a, "counted")
	if err != nil {
		return r, err
	}
	defer l.end()
	marks, err := r.live(ctx, l, log)
	if err != nil {
		return r, err
	}
	file, err := os.Open(log.path)
	if err != nil {
		return r, fmt.Errorf("open audit log: %w", err)
	}
	defer file.Close()
	spans, err := countRequests(file, marks...)
	if err != nil {
		return r, err
	}
	r.count(float64(cfg.pods), spans)
	return r, nil
}

// live is the life of the pods. It returns when it began, when the idle time began and
// ended, and when it ended.
func (r *counted) live(ctx context.Context, l *life, log audit) ([]time.Time, error) {
	var used [4]cpu
	var marks []time.Time
	mark := func() (err error) {
		used[len(marks)], err = l.cpu()
		marks = append(marks, time.Now())
		return err
	}
	var up phase
	for _, step := range []func() error{
		func() error { return log.awaitQuiet(ctx) },
		mark,
		func() (err error) { up, err = l.createAll(ctx); return err },
		func() error { return log.awaitQuiet(ctx) },
		mark,
		func() error { return idle(ctx, l.cfg.idle) },
		mark,
		func() error { _, err := l.deleteAll(ctx); return err },
		func() error { return log.awaitQuiet(ctx) },
		mark,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	r.RunningLag = up.lag().Seconds()
	r.EventsTrail = max(0, marks[1].Sub(latest(up.seen)).Seconds()-quietFor.Seconds())
	r.AgentCPUMillis = millis(used[1].agent-used[0].agent+used[3].agent-used[2].agent) / float64(l.cfg.pods)
	r.IdleSeconds = marks[2].Sub(marks[1]).Seconds()
	r.IdleCPUPercent = 100 * (used[2].agent - used[1].agent).Seconds() / r.IdleSeconds
	peak, err := peakMemory(l.agent.pid())
	r.AgentPeakMiB = float64(peak) / (1 << 20)
	return marks, err
}

func (r *counted) count(pods float64, spans []requests) {
	r.Requests, r.IdleRequests = requests{}, spans[1]
	r.Requests.add(spans[0])
	r.Requests.add(spans[2])
	r.RequestsPerPod = float64(r.Requests.sum()) / pods
	r.WritesPerPod = float64(r.Requests["patch pods/status"]+r.Requests["update pods/status"]+r.Requests["patch pods"]+r.Requests["delete pods"]) / pods
	r.EventsPerPod = float64(r.Requests["create events"]+r.Requests["patch events"]+r.Requests["update events"]) / pods
	r.IdlePerMinute = float64(r.IdleRequests.sum()) / r.IdleSeconds * 60
}
