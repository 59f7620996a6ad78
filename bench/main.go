// SPDX-License-Identifier: Apache-2.0

// Command bench drives pods through their life on a real API server and
// measures the virtual node from outside: how far it lags behind its client, and what it costs.
//
// The guarantee: what is timed and what is counted are apart. Counting requests needs the API
// server's audit log, which slows it down, so that is a round of its own in another cluster.
//
// What surprises: API server, node and client share one machine, so the client's own speed
// is part of what is measured. Compare only numbers of one machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	bin      string
	pods     int
	workers  int
	rounds   int
	idle     time.Duration
	timeout  time.Duration
	qps      int
	burst    int
	args     []string
	defaults bool
	requests bool
	managers bool
	logs     bool
	json     bool
	check    bool
}

func parseFlags(args []string) (config, error) {
	var c config
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&c.bin, "bin", "../bin", "`folder` with the programs devcluster and virtual-kubelet")
	f.IntVar(&c.pods, "pods", 1000, "`number` of pods")
	f.IntVar(&c.workers, "workers", 16, "`number` of requests that the client has under way")
	f.IntVar(&c.rounds, "rounds", 3, "`number` of timed rounds")
	f.DurationVar(&c.idle, "idle", 30*time.Second, "how long the node is watched with its pods idle")
	f.DurationVar(&c.timeout, "timeout", 5*time.Minute, "how long one round may take, the idle time apart")
	f.IntVar(&c.qps, "kube-api-qps", 5000, "requests a second that the node may send")
	f.IntVar(&c.burst, "kube-api-burst", 10000, "requests beyond that that the node may send at once")
	f.Func("node-arg", "further `flag` of virtual-kubelet, such as --pod-sync-workers=50 (repeatable)", func(arg string) error {
		c.args = append(c.args, arg)
		return nil
	})
	f.BoolVar(&c.defaults, "compare-defaults", false, "one round more, with the node's default limits on requests")
	f.BoolVar(&c.requests, "requests", true, "one round more, with an audit log, to count requests and to watch the idle node")
	f.BoolVar(&c.managers, "managers", false, "run kube-controller-manager and kube-scheduler too")
	f.BoolVar(&c.logs, "logs", false, "show what the programs log")
	f.BoolVar(&c.json, "json", false, "print JSON instead of a table")
	f.BoolVar(&c.check, "check", false, "exit with 1 if the median misses a goal")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q; see -help", f.Arg(0))
	case c.pods < 1 || c.workers < 1 || c.rounds < 1:
		return c, errors.New("-pods, -workers and -rounds must be 1 or more")
	case c.idle < 0 || c.timeout <= 0:
		return c, errors.New("-idle must be 0 or more, -timeout more than 0")
	}
	return c, nil
}

func main() {
	cfg, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(cfg config) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := measure(ctx, cfg)
	if err != nil {
		return err
	}
	if cfg.json {
		err = r.printJSON(os.Stdout)
	} else {
		err = r.printTable(os.Stdout)
	}
	if missed := r.missed(); err == nil && cfg.check && len(missed) > 0 {
		err = fmt.Errorf("the median misses a goal: %s", missed)
	}
	return err
}
