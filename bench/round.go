// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// round is the outcome of one timed round.
type round struct {
	CreatedSeconds    float64 `json:"allCreatedSeconds"`
	RunningSeconds    float64 `json:"allRunningSeconds"`
	RunningLagSeconds float64 `json:"runningLagSeconds"`
	RunningP50Millis  float64 `json:"createToRunningP50Millis"`
	RunningP99Millis  float64 `json:"createToRunningP99Millis"`
	MarkedSeconds     float64 `json:"allDeletedMarkedSeconds"`
	GoneSeconds       float64 `json:"allGoneSeconds"`
	GoneLagSeconds    float64 `json:"goneLagSeconds"`
	GoneP50Millis     float64 `json:"deleteToGoneP50Millis"`
	GoneP99Millis     float64 `json:"deleteToGoneP99Millis"`
	AgentCPUMillis    float64 `json:"agentCPUMillisPerPod"`
	AgentPeakMiB      float64 `json:"agentPeakMemoryMiB"`
	ClusterCPUMillis  float64 `json:"clusterCPUMillisPerPod"`
	ClientCPUMillis   float64 `json:"clientCPUMillisPerPod"`
	WatchResumed      float64 `json:"clientWatchResumed"`
	LoadBefore        float64 `json:"loadAverageBefore"`
}

// runRound times one life of all pods, on a node of its own.
func runRound(ctx context.Context, cfg config, c *cluster, a agent, node string) (r round, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.timeout, fmt.Errorf("not done within -timeout %s", cfg.timeout))
	defer cancel()
	if r.LoadBefore, err = load(); err != nil {
		return r, err
	}
	l, err := beginLife(ctx, cfg, c, a, node)
	if err != nil {
		return r, err
	}
	defer l.end()
	before, err := l.cpu()
	if err != nil {
		return r, err
	}
	up, err := l.createAll(ctx)
	if err != nil {
		return r, err
	}
	down, err := l.deleteAll(ctx)
	if err != nil {
		return r, err
	}
	after, err := l.cpu()
	if err != nil {
		return r, err
	}
	peak, err := peakMemory(l.agent.pid())
	if err != nil {
		return r, err
	}
	r.setTimes(up, down)
	r.WatchResumed = float64(l.tracker.resumed.Load())
	pods := float64(cfg.pods)
	r.AgentCPUMillis = millis(after.agent-before.agent) / pods
	r.ClusterCPUMillis = millis(after.cluster-before.cluster) / pods
	r.ClientCPUMillis = millis(after.client-before.client) / pods
	r.AgentPeakMiB = float64(peak) / (1 << 20)
	return r, nil
}

func (r *round) setTimes(up, down phase) {
	r.CreatedSeconds, r.RunningSeconds, r.RunningLagSeconds = up.client().Seconds(), up.total().Seconds(), up.lag().Seconds()
	r.MarkedSeconds, r.GoneSeconds, r.GoneLagSeconds = down.client().Seconds(), down.total().Seconds(), down.lag().Seconds()
	running, gone := up.perPod(), down.perPod()
	r.RunningP50Millis, r.RunningP99Millis = millis(percentile(running, 50)), millis(percentile(running, 99))
	r.GoneP50Millis, r.GoneP99Millis = millis(percentile(gone, 50)), millis(percentile(gone, 99))
}

// cpu is the CPU time that everybody has used so far.
type cpu struct{ agent, cluster, client time.Duration }

func (l *life) cpu() (c cpu, err error) {
	if c.agent, err = cpuTime(l.agent.pid()); err != nil {
		return c, fmt.Errorf("read CPU time of %s: %w", l.agent.name, err)
	}
	if c.cluster, err = cpuTime(l.cluster.pid()); err != nil {
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
