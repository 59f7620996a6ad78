// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

// report is everything that was measured.
type report struct {
	CPUs      int               `json:"cpus"`
	Workers   int               `json:"workers"`
	Every     time.Duration     `json:"every,omitempty"` // between two pods that were created; 0: none
	Began     time.Time         `json:"began"`
	Agents    []string          `json:"agents"`
	Settings  map[string]string `json:"settings"` // by agent
	Scenarios []outcome         `json:"scenarios"`
}

// outcome is the result of all agents in one scenario.
type outcome struct {
	scenario
	Rounds  map[string][]*round  `json:"rounds"`           // by agent
	Skipped map[string]string    `json:"skipped"`          // why, by agent
	Starts  map[string][]*starts `json:"starts,omitempty"` // by agent, of a scenario with containers, which has no rounds
}

// measureScenarios runs all scenarios in one cluster. With an error it returns the results before the error, nil if
// there are none.
func measureScenarios(ctx context.Context, cfg config) (*report, error) {
	r := &report{
		CPUs: runtime.NumCPU(), Workers: cfg.workers, Every: cfg.every, Began: time.Now().UTC().Truncate(time.Second),
		Agents: cfg.agents, Settings: map[string]string{},
	}
	agents := map[string]agent{}
	for _, name := range cfg.agents {
		if !slices.ContainsFunc(cfg.scenarios, func(s scenario) bool { return s.suitsAgent(name) }) {
			continue
		}
		a, err := newAgent(ctx, cfg, name)
		if err != nil {
			return nil, err
		}
		agents[name] = a
		r.Settings[name] = a.describeSettings()
	}
	err := withMachine(ctx, cfg, func(m *machine) error {
		printProgress("warming up")
		if _, err := runRound(ctx, m, warmUp, nullAgent{}, warmUp.Name, false); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		for _, s := range cfg.scenarios {
			var chosen []agent
			for _, name := range cfg.agents {
				if s.suitsAgent(name) {
					chosen = append(chosen, agents[name])
				}
			}
			run := runScenario
			switch {
			case s.Containers:
				run = runStarts
			case s.Backend == "qemu":
				run = runCells
			}
			out, err := run(ctx, m, s, chosen)
			if err == nil || len(out.Rounds)+len(out.Starts) > 0 { // the results of an interrupted run are kept
				r.Scenarios = append(r.Scenarios, out)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && len(r.Scenarios) == 0 {
		return nil, err
	}
	return r, err
}

// runScenario runs all rounds of a scenario. Each round begins with another agent.
func runScenario(ctx context.Context, m *machine, s scenario, agents []agent) (outcome, error) {
	out := outcome{scenario: s, Rounds: map[string][]*round{}, Skipped: map[string]string{}}
	for i := range m.cfg.rounds {
		for j := range agents {
			a := agents[(i+j)%len(agents)]
			if out.Skipped[a.agentName()] != "" {
				continue
			}
			printProgress("%s, round %d of %d: %s", s, i+1, m.cfg.rounds, a.agentName())
			r, err := runRound(ctx, m, s, a, fmt.Sprintf("%s-%s-%d", s.Name, a.agentName(), i+1), i == 0 || s.Remote || s.Backend != "")
			switch {
			case errors.Is(err, errCannot):
				out.Skipped[a.agentName()] = err.Error()
				printProgress("%s is left out: %v", a.agentName(), err)
			case err != nil:
				return out, fmt.Errorf("%s, round %d of %s: %w", s, i+1, a.agentName(), err)
			default:
				out.Rounds[a.agentName()] = append(out.Rounds[a.agentName()], r)
			}
		}
	}
	return out, nil
}

// printProgress prints the progress for a person.
func printProgress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}
