// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// startMetric is one line of the table of a scenario with containers; a goal is a limit of ours / kubelet, 0 is none.
type startMetric struct {
	label  string
	format string
	goal   float64
	of     func(*starts) float64
}

var startMetrics = []startMetric{
	{"one after another, median", "%.0f ms", 0.95, func(r *starts) float64 { return r.OneByOneP50Millis }},
	{"  99th percentile", "%.0f ms", 0.95, func(r *starts) float64 { return r.OneByOneP99Millis }},
	{"all at once, all Running", "%.2f s", 0.95, func(r *starts) float64 { return r.AtOnceSeconds }},
	{"  all gone", "%.2f s", 0, func(r *starts) float64 { return r.GoneSeconds }},
	{"CPU of the agent per start", "%.1f ms", 0, func(r *starts) float64 { return r.AgentCPUMillis }},
	{"memory of the agent at rest", "%.1f MiB", 0.6, func(r *starts) float64 { return r.AgentSteadyMiB }},
	{"  peak", "%.1f MiB", 0.6, func(r *starts) float64 { return r.AgentPeakMiB }},
	{"CPU at rest, % of a core", "%.2f", 0.5, func(r *starts) float64 { return r.RestCPUPercent }},
	{"  requests a minute", "%.1f", 0, func(r *starts) float64 { return r.RestPerMinute }},
	{"load average before", "%.1f", 0, func(r *starts) float64 { return r.LoadBefore }},
}

// pool gives each round the percentiles of the pods of all rounds: one round has too few for a 99th percentile.
func pool(rounds []*starts) {
	var all []float64
	for _, r := range rounds {
		all = append(all, r.OneByOneMillis...)
	}
	slices.Sort(all)
	for _, r := range rounds {
		r.OneByOneP50Millis, r.OneByOneP99Millis = percentile(all, 50), percentile(all, 99)
	}
}

func medianOf(rounds []*starts, of func(*starts) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// printStarts writes the table of a scenario with containers.
func (o outcome) printStarts(w io.Writer, agents []string) error {
	agents = slices.DeleteFunc(slices.Clone(agents), func(name string) bool { return len(o.Starts[name]) == 0 })
	fmt.Fprintf(w, "\n%s\n\n", o.scenario)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	compared := len(o.Starts["ours"]) > 0 && len(o.Starts["kubelet"]) > 0
	var goals []string
	line := func(m startMetric) {
		fmt.Fprint(t, m.label)
		for _, name := range agents {
			fmt.Fprintf(t, "\t"+m.format, medianOf(o.Starts[name], m.of))
		}
		if compared && medianOf(o.Starts["kubelet"], m.of) > 0 {
			ratio := medianOf(o.Starts["ours"], m.of) / medianOf(o.Starts["kubelet"], m.of)
			fmt.Fprintf(t, "\t%.2f", ratio)
			if m.goal > 0 {
				goals = append(goals, fmt.Sprintf("%s  %s: %.2f x kubelet, goal %.2f x", reachedOrMissed(ratio <= m.goal), m.label, ratio, m.goal))
			}
		}
		fmt.Fprintln(t)
	}
	if len(agents) == 0 {
		return nil
	}
	fmt.Fprintf(t, "median of %d", len(o.Starts[agents[0]]))
	for _, name := range agents {
		pool(o.Starts[name])
		fmt.Fprintf(t, "\t%s", name)
	}
	if compared {
		fmt.Fprint(t, "\tours / kubelet")
	}
	fmt.Fprintln(t)
	for _, m := range startMetrics {
		line(m)
	}
	line(startMetric{"requests per start", "%.2f", 0, func(r *starts) float64 { return float64(r.Requests.sum()) / r.Pods }})
	for _, key := range startKeys(o.Starts) {
		line(startMetric{"  " + key, "%.2f", 0, func(r *starts) float64 { return float64(r.Requests[key]) / r.Pods }})
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, text := range goals {
		fmt.Fprintln(w, text)
	}
	if mine := o.Starts["ours"]; len(mine) > 0 {
		reads := medianOf(mine, func(r *starts) float64 { return r.ReadsBeforeWrites })
		fmt.Fprintf(w, "%s  reads of a pod per start: %.2f, goal 0\n", reachedOrMissed(reads == 0), reads)
	}
	return nil
}

func reachedOrMissed(reached bool) string {
	return map[bool]string{true: "reached", false: "missed "}[reached]
}
