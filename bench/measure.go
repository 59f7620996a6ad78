// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

// report is everything that was measured.
type report struct {
	Agent    string    `json:"agent"`
	Settings string    `json:"settings"`
	Pods     int       `json:"pods"`
	Workers  int       `json:"workers"`
	CPUs     int       `json:"cpus"`
	Began    time.Time `json:"began"`
	Rounds   []round   `json:"rounds"`
	// Defaults is a round with the agent's default limits on requests; nil if it was not asked for.
	Defaults *round `json:"defaultLimits,omitempty"`
	// Counted is the round with the audit log; nil if it was not asked for.
	Counted *counted `json:"counted,omitempty"`
}

// measure runs all rounds.
func measure(ctx context.Context, cfg config) (*report, error) {
	a := virtualKubelet(cfg.bin, append([]string{"--kube-api-qps=" + strconv.Itoa(cfg.qps), "--kube-api-burst=" + strconv.Itoa(cfg.burst)}, cfg.args...)...)
	r := &report{
		Agent: a.name, Settings: a.settings, Pods: cfg.pods, Workers: cfg.workers,
		CPUs: runtime.NumCPU(), Began: time.Now().UTC().Truncate(time.Second),
	}
	if err := r.runTimed(ctx, cfg, a); err != nil {
		return nil, err
	}
	if cfg.requests {
		progress("counting requests, with an audit log")
		c, err := runCounted(ctx, cfg, a)
		if err != nil {
			return nil, fmt.Errorf("count requests: %w", err)
		}
		r.Counted = &c
	}
	return r, nil
}

// runTimed runs the timed rounds in one cluster, each with an agent of its own.
func (r *report) runTimed(ctx context.Context, cfg config, a agent) error {
	base, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(base)
	c, err := startCluster(ctx, cfg, base)
	if err != nil {
		return err
	}
	defer c.stop()
	// The first pods in a new API server cost it more than those that follow.
	warm := cfg
	warm.pods = min(cfg.pods, 100)
	progress("warming up")
	if _, err := runRound(ctx, warm, c, a, "warm-up"); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for i := range cfg.rounds {
		progress("round %d of %d", i+1, cfg.rounds)
		result, err := runRound(ctx, cfg, c, a, fmt.Sprintf("round-%d", i+1))
		if err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
		r.Rounds = append(r.Rounds, result)
	}
	if cfg.defaults {
		progress("one round with the default limits")
		result, err := runRound(ctx, cfg, c, virtualKubelet(cfg.bin, cfg.args...), "defaults")
		if err != nil {
			return fmt.Errorf("round with default limits: %w", err)
		}
		r.Defaults = &result
	}
	return nil
}

// progress tells a person what is going on.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
