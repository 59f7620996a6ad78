// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// measureUsage returns the usage while do ran, and until the agent was quiet again.
func (l *life) measureUsage(ctx context.Context, do func() error) (used cpu, err error) {
	log := l.machine.audit
	if err := log.awaitQuiet(ctx, quietLimit); err != nil {
		return used, err
	}
	before, err := l.cpuUsage()
	if err != nil {
		return used, err
	}
	if err := do(); err != nil {
		return used, err
	}
	if err := log.awaitQuiet(ctx, quietLimit); err != nil {
		return used, err
	}
	after, err := l.cpuUsage()
	return cpu{agent: after.agent - before.agent, all: after.all - before.all}, err
}

// countStarts adds the agent's requests and usage while pods start, and until the agent is quiet again.
func (r *starts) countStarts(ctx context.Context, l *life, start func() error) error {
	var begin time.Time
	used, err := l.measureUsage(ctx, func() error {
		begin = time.Now()
		return start()
	})
	if err != nil {
		return err
	}
	r.Requests.add(l.machine.audit.countRequests(begin, time.Now()))
	pods := float64(l.scenario.Pods)
	per := func(sum float64, more time.Duration) float64 { return (sum*r.Pods + inMillis(more)) / (r.Pods + pods) }
	r.AgentCPUMillis, r.AllCPUMillis = per(r.AgentCPUMillis, used.agent), per(r.AllCPUMillis, used.all)
	r.Pods += pods
	return nil
}

// countGone deletes all pods, and records the cost.
func (r *starts) countGone(ctx context.Context, l *life) error {
	var down phase
	used, err := l.measureUsage(ctx, func() (err error) {
		down, err = l.deleteAll(ctx)
		return err
	})
	if err != nil {
		return err
	}
	pods := float64(l.scenario.Pods)
	r.GoneSeconds, r.GoneAgentMillis, r.GoneAllMillis = down.totalTime().Seconds(), inMillis(used.agent)/pods, inMillis(used.all)/pods
	return nil
}

// observeRest observes the agent while all pods run. It takes twice as long as in the other scenarios, because a
// kubelet has long periods.
func (r *starts) observeRest(ctx context.Context, l *life) error {
	log := l.machine.audit
	begin := time.Now()
	before, err := l.cpuUsage()
	if err != nil {
		return err
	}
	rest := 2 * l.machine.cfg.idle
	if l.scenario.Runtimes {
		rest = l.machine.cfg.idle
	}
	if err := waitFor(ctx, rest); err != nil {
		return err
	}
	after, err := l.cpuUsage()
	if err != nil {
		return err
	}
	took := time.Since(begin)
	resident, err := residentMemory(l.agent.processID())
	if err != nil {
		return err
	}
	all, err := l.agent.account.readMemory()
	if err != nil {
		return err
	}
	r.AgentSteadyMiB = float64(resident) / (1 << 20)
	r.MemoryPerPodMiB = float64(all) / (1 << 20) / float64(l.scenario.Pods)
	r.RestCPUPercent = 100 * (after.agent - before.agent).Seconds() / took.Seconds()
	r.RestAllCPUPercent = 100 * (after.all - before.all).Seconds() / took.Seconds()
	if err := waitFor(ctx, 2*auditDelay); err != nil { // until the last line is written
		return err
	}
	if err := log.readNewLines(); err != nil {
		return err
	}
	r.RestPerMinute = float64(log.countRequests(begin, begin.Add(took)).countAll()) / took.Minutes()
	return writeProfiles(ctx, l.agent, heapProfile)
}
