// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// starts is the result of one agent for the starts of pods with containers.
type starts struct {
	OneByOneP50Millis float64   `json:"oneByOneP50Millis"`
	OneByOneP99Millis float64   `json:"oneByOneP99Millis"`
	OneByOneMillis    []float64 `json:"oneByOneMillis"`  // of each pod
	EndedSeconds      float64   `json:"allEndedSeconds"` // until the pods of the first part were gone, whose programs end on request
	AtOnceSeconds     float64   `json:"allAtOnceSeconds"`
	GoneSeconds       float64   `json:"allGoneSeconds"`
	AgentCPUMillis    float64   `json:"agentCPUMillisPerStart"`
	AllCPUMillis      float64   `json:"allCPUMillisPerStart"` // of the agent and all that it needs for its pods
	GoneAgentMillis   float64   `json:"agentCPUMillisPerDeletion"`
	GoneAllMillis     float64   `json:"allCPUMillisPerDeletion"`
	MemoryPerPodMiB   float64   `json:"memoryPerPodMiB"` // of all, shared memory counted once
	AgentSteadyMiB    float64   `json:"agentMemoryMiB"`
	AgentPeakMiB      float64   `json:"agentPeakMemoryMiB"`
	GoneP50Millis     float64   `json:"goneP50Millis,omitempty"` // of pods on machines of QEMU, from the answer to the deletion
	Requests          requests  `json:"requests"`                // of all starts
	ReadsBeforeWrites float64   `json:"podReadsPerStart"`        // of one pod
	Pods              float64   `json:"starts"`                  // that the requests are of
	RestCPUPercent    float64   `json:"restCPUPercent"`          // of one core
	RestAllCPUPercent float64   `json:"restAllCPUPercent"`       // of one core
	RestPerMinute     float64   `json:"restRequestsPerMinute"`   // all
	LoadBefore        float64   `json:"loadAverageBefore"`
}

// runStarts runs all rounds of a scenario with containers. Each round begins with another agent.
func runStarts(ctx context.Context, m *machine, s scenario, agents []agent) (out outcome, err error) {
	out = outcome{scenario: s, Starts: map[string][]*starts{}}
	printProgress("starting a container runtime")
	if m.accounts, err = openAccounts(); err != nil {
		return out, err
	}
	defer func() { // mounts end with the processes, or could not be removed
		err = errors.Join(err, m.accounts.close(), unmountBelow(m.base))
		m.accounts = nil
	}()
	m.images = filepath.Join(m.base, "images")
	if m.containers, err = startContainers(ctx, m.accounts, m.images); err != nil {
		return out, fmt.Errorf("start a container runtime: %w", err)
	}
	defer func() { err = errors.Join(err, m.containers.Close()) }()
	for i := range m.cfg.rounds {
		if !s.Runtimes {
			printProgress("%s, round %d of %d: %s", s, i+1, m.cfg.rounds, floorName)
			r, err := floorRound(ctx, m, s)
			if err != nil {
				return out, fmt.Errorf("%s, round %d of %s: %w", s, i+1, floorName, err)
			}
			out.Starts[floorName] = append(out.Starts[floorName], r)
		}
		for j := range agents {
			a := agents[(i+j)%len(agents)]
			printProgress("%s, round %d of %d: %s", s, i+1, m.cfg.rounds, a.agentName())
			r, err := startRound(ctx, m, s, a, fmt.Sprintf("%s-%s-%d", s.Name, a.agentName(), i+1))
			if err != nil {
				return out, fmt.Errorf("%s, round %d of %s: %w", s, i+1, a.agentName(), err)
			}
			out.Starts[a.agentName()] = append(out.Starts[a.agentName()], r)
		}
	}
	return out, nil
}

// floorName stands for the lower bound of all agents: the calls of the container runtime alone.
const floorName = "floor"

func floorRound(ctx context.Context, m *machine, s scenario) (r *starts, err error) {
	r = &starts{}
	if r.LoadBefore, err = readLoad(); err != nil {
		return nil, err
	}
	r.OneByOneMillis, err = m.containers.StartBare(ctx, s.Pods)
	return r, errors.Join(err, m.containers.RemovePods(ctx))
}

// startRound starts the pods one after another, waits, deletes them, and starts them all at once.
func startRound(ctx context.Context, m *machine, s scenario, a agent, prefix string) (r *starts, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*m.cfg.timeout+2*m.cfg.idle, fmt.Errorf("not done within twice -timeout %s", m.cfg.timeout))
	defer cancel()
	r = &starts{Requests: requests{}}
	if r.LoadBefore, err = readLoad(); err != nil {
		return nil, err
	}
	p, err := a.start(ctx, m, s, prefix)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			m.endPods(prefix)
		}
		p.stop()
	}()
	for _, part := range []struct {
		name, says string
		run        func(context.Context, *life) error
	}{{"one", "pods one after another, and at rest", r.oneByOne}, {"all", "pods all at once", r.allAtOnce}} {
		l, err := m.newLife(ctx, s, p, []string{prefix}, prefix+"-"+part.name)
		if err != nil {
			return nil, err
		}
		printProgress("  %s", part.says)
		err = part.run(ctx, l)
		l.end()
		if err != nil {
			return nil, err
		}
	}
	peak, err := peakMemory(p.processID())
	if err != nil {
		return nil, err
	}
	r.AgentPeakMiB = float64(peak) / (1 << 20)
	r.ReadsBeforeWrites = float64(r.Requests["get pods"]) / r.Pods
	if err := writeProfiles(ctx, p, restProfile); err != nil {
		return nil, err
	}
	p.stop()
	return r, errors.Join(m.containers.RemovePods(ctx), m.endProcesses(prefix), m.dropNodes(ctx))
}

// oneByOne starts one pod after another, and then observes the agent at rest.
func (r *starts) oneByOne(ctx context.Context, l *life) error {
	err := r.countStarts(ctx, l, func() error {
		pods := l.machine.client.CoreV1().Pods(l.namespace)
		for i := range l.scenario.Pods {
			if _, err := pods.Create(ctx, l.newPod(i), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create pod: %w", err)
			}
			asked := time.Now()
			if err := l.wait(ctx, l.tracker.started[i]); err != nil {
				return err
			}
			r.OneByOneMillis = append(r.OneByOneMillis, inMillis(time.Since(asked)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.observeRest(ctx, l); err != nil {
		return err
	}
	down, err := l.deleteAll(ctx)
	if err == nil {
		r.EndedSeconds = down.totalTime().Seconds()
	}
	return err
}

// allAtOnce creates all pods as fast as the client can, and deletes them in the same way.
func (r *starts) allAtOnce(ctx context.Context, l *life) error {
	l.deaf = l.scenario.Runtimes
	err := r.countStarts(ctx, l, func() error {
		up, err := l.createAll(ctx)
		if err == nil {
			r.AtOnceSeconds = up.totalTime().Seconds()
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.countGone(ctx, l)
}

// startKeys returns the kinds of requests of all agents, the most frequent first.
func startKeys(all map[string][]*starts) []string {
	sum := requests{}
	for _, rounds := range all {
		for _, r := range rounds {
			sum.add(r.Requests)
		}
	}
	return sum.orderedKinds()
}
