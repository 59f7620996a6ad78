// SPDX-License-Identifier: Apache-2.0

// Command bench drives pods through their life on a real API server, with one agent after the other, and measures the agents from outside:
// their lag behind the client, and their resource usage.
//
// The guarantee: results side by side come from one run, on one control plane, with the same client, the same
// credentials and the same log of requests. The agents take turns in every round.
//
// Note: API server, agent and client share one machine, so the client's own speed is part of the
// results. Compare the agents of one run. Of different runs compare only the ratios.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config has the values of the flags.
type config struct {
	bin       string
	scenarios []scenario
	agents    []string
	rounds    int
	workers   int
	idle      time.Duration
	idleSet   bool // by the flag
	timeout   time.Duration
	every     time.Duration // between two pods that are created; 0: none
	pods      int           // of each scenario; 0: as many as it has
	before    string        // virtual-kubelet of an earlier version; "": none
	args      []string      // further flags of virtual-kubelet
	profile   string        // folder for profiles; "": none
	into      string        // file that takes the table; "": none
	logs      bool
	json      bool
}

func parseFlags(args []string) (config, error) {
	var c config
	var names, agents string
	everyAgent := strings.Join(agentNames, ",")
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&c.bin, "bin", "../bin", "`folder` with the programs devcluster and virtual-kubelet; KWOK is built into it")
	f.StringVar(&names, "scenarios", "1000", "comma-separated `names`, or all, which is those without containers: "+strings.Join(scenarioNames(), ", "))
	f.StringVar(&agents, "agents", everyAgent, "comma-separated `names`")
	f.IntVar(&c.rounds, "rounds", 3, "`number` of rounds of each scenario")
	f.IntVar(&c.workers, "workers", 16, "`number` of requests that the client has under way")
	f.DurationVar(&c.idle, "idle", 30*time.Second, "how long each agent is watched with its pods at rest, in the first round")
	f.DurationVar(&c.timeout, "timeout", 5*time.Minute, "how long one agent may take for one round, the idle time apart")
	f.Func("node-arg", "further `flag` of virtual-kubelet, such as --pod-sync-workers=50 (repeatable)", func(arg string) error {
		c.args = append(c.args, arg)
		return nil
	})
	f.DurationVar(&c.every, "every", 0, "how long after the one before the client creates a pod; 0: at full speed")
	f.IntVar(&c.pods, "pods", 0, "`number` of pods instead of that of the scenarios")
	f.StringVar(&c.before, "before", "", "`program` virtual-kubelet of a version that isolates containers by itself, which is the agent before")
	f.StringVar(&c.profile, "profile", "", "`folder` for CPU and heap profiles of virtual-kubelet, which is built for it with a profiler")
	f.StringVar(&c.into, "into", "", "`file` in which the table replaces the one between the markers")
	f.BoolVar(&c.logs, "logs", false, "show what the programs log")
	f.BoolVar(&c.json, "json", false, "print JSON instead of a table")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	f.Visit(func(set *flag.Flag) { c.idleSet = c.idleSet || set.Name == "idle" })
	c.agents = strings.Split(agents, ",")
	for _, name := range c.agents {
		if !slices.Contains(agentNames, name) {
			return c, fmt.Errorf("-agents: there is no %q; there are %s", name, strings.Join(agentNames, ", "))
		}
	}
	var err error
	if c.scenarios, err = chooseScenarios(names); err != nil {
		return c, err
	}
	if c.before == "" && agents == everyAgent {
		c.agents = slices.DeleteFunc(c.agents, func(name string) bool { return name == "before" })
	}
	for i := range c.scenarios {
		c.scenarios[i].Pods = cmp.Or(c.pods, c.scenarios[i].Pods)
	}
	switch {
	case c.before == "" && slices.Contains(c.agents, "before"):
		return c, errors.New("-agents: before needs -before")
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q; see -help", f.Arg(0))
	case c.rounds < 1 || c.workers < 1 || c.pods < 0:
		return c, errors.New("-rounds and -workers must be 1 or more, -pods 0 or more")
	case slices.ContainsFunc(c.scenarios, func(s scenario) bool { return s.isCloud() && !s.hasCells() && s.Pods <= endings }):
		return c, fmt.Errorf("-pods: want more than %d at the emulator of a cloud, because so many end by themselves", endings)
	case c.idle < 0 || c.every < 0 || c.timeout <= 0:
		return c, errors.New("-idle and -every must be 0 or more, -timeout more than 0")
	}
	return c, nil
}

// idleOf returns the time for which an idle agent is observed in a scenario.
func (c config) idleOf(s scenario) time.Duration {
	if c.idleSet || s.Idle == 0 {
		return c.idle
	}
	return s.Idle
}

// podInterval returns the time between two pods of a scenario. The warm-up has no such time.
func (c config) podInterval(s scenario) time.Duration {
	if s.Name == warmUp.Name {
		return 0
	}
	return cmp.Or(c.every, s.Every)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch first := append(os.Args, "")[1]; first {
	case nullCommand:
		err = runNull(ctx, os.Args[2:])
	case mockPluginCommand:
		err = runMockPlugin(ctx, os.Args[2:])
	default:
		err = runBench(ctx, os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func runBench(ctx context.Context, args []string) error {
	cfg, err := parseFlags(args)
	if err != nil {
		return err
	}
	r, err := measureScenarios(ctx, cfg)
	switch {
	case r == nil:
		return err
	case err != nil: // a partial table must not replace the table in a file
		printProgress("this is what there is: %v", err)
		return errors.Join(r.printReport(cfg), err)
	}
	if cfg.into != "" {
		if err := r.insertInto(cfg.into); err != nil {
			return err
		}
	}
	return r.printReport(cfg)
}

// printReport writes the report to the standard output.
func (r *report) printReport(cfg config) error {
	if cfg.json {
		return r.printJSON(os.Stdout)
	}
	return r.printTable(os.Stdout)
}
