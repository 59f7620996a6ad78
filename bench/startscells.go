// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
)

// runCells runs all rounds of starts on machines of QEMU. Each round begins with another agent.
func runCells(ctx context.Context, m *machine, s scenario, agents []agent) (out outcome, err error) {
	out = outcome{scenario: s, Starts: map[string][]*starts{}}
	for i := range m.cfg.rounds {
		for j := range agents {
			a := agents[(i+j)%len(agents)]
			printProgress("%s, round %d of %d: %s", s, i+1, m.cfg.rounds, a.agentName())
			r, err := runCellRound(ctx, m, s, a, fmt.Sprintf("%s-%s-%d", s.Name, a.agentName(), i+1))
			if err != nil {
				return out, fmt.Errorf("%s, round %d of %s: %w", s, i+1, a.agentName(), err)
			}
			out.Starts[a.agentName()] = append(out.Starts[a.agentName()], r)
		}
	}
	return out, nil
}

// runCellRound starts and deletes one pod after another. Each pod waits until the machine of the last pod is gone.
func runCellRound(ctx context.Context, m *machine, s scenario, a agent, prefix string) (r *starts, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 4*m.cfg.timeout, fmt.Errorf("not done within four times -timeout %s", m.cfg.timeout))
	defer cancel()
	r = &starts{Requests: requests{}}
	if r.LoadBefore, err = readLoad(); err != nil {
		return nil, err
	}
	p, err := a.start(ctx, m, s, prefix)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	single := s
	single.Pods = 1
	var gone []float64
	for i := range s.Pods {
		if err := p.machines.awaitTurn(ctx, p); err != nil {
			return nil, err
		}
		l, err := m.newLife(ctx, single, p, []string{prefix}, fmt.Sprintf("%s-%d", prefix, i))
		if err != nil {
			return nil, err
		}
		up, err := l.createAll(ctx)
		var down phase
		if err == nil {
			down, err = l.deleteAll(ctx)
		}
		l.end()
		if err != nil {
			return nil, err
		}
		r.OneByOneMillis = append(r.OneByOneMillis, inMillis(up.perPod()[0]))
		gone = append(gone, inMillis(down.perPod()[0]))
		printProgress("  pod %d of %d: Running after %.0f ms, gone after %.0f ms", i+1, s.Pods, r.OneByOneMillis[i], gone[i])
	}
	slices.Sort(gone)
	r.GoneP50Millis = percentileOf(gone, 50)
	peak, err := peakMemory(p.processID())
	if err != nil {
		return nil, err
	}
	r.AgentPeakMiB = float64(peak) / (1 << 20)
	p.stop()
	return r, m.dropNodes(ctx)
}
