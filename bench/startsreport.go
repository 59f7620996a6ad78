// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// startMetric is one line of the table of a scenario with containers.
type startMetric struct {
	label  string
	format string
	of     func(*starts) float64
}

var startMetrics = []startMetric{
	{"one after another, median", "%.0f ms", oneByOneMedian},
	{"  99th percentile", "%.0f ms", oneByOneLate},
	{"all at once, all Running", "%.2f s", atOnce},
	{"  all gone", "%.2f s", func(r *starts) float64 { return r.GoneSeconds }},
	{"CPU of the agent per start", "%.1f ms", func(r *starts) float64 { return r.AgentCPUMillis }},
	{"memory of the agent at rest", "%.1f MiB", func(r *starts) float64 { return r.AgentSteadyMiB }},
	{"  peak", "%.1f MiB", func(r *starts) float64 { return r.AgentPeakMiB }},
	{"CPU at rest, % of a core", "%.2f", func(r *starts) float64 { return r.RestCPUPercent }},
	{"  requests a minute", "%.1f", func(r *starts) float64 { return r.RestPerMinute }},
	{"load average before", "%.1f", func(r *starts) float64 { return r.LoadBefore }},
}

// runtimeMetrics are the lines of comparisons of container runtimes.
var runtimeMetrics = []startMetric{
	{"one after another, median", "%.0f ms", oneByOneMedian},
	{"  99th percentile", "%.0f ms", oneByOneLate},
	{"  all gone, as programs listen", "%.2f s", func(r *starts) float64 { return r.EndedSeconds }},
	{"all at once, all Running", "%.2f s", atOnce},
	{"  all gone, as none listens", "%.2f s", func(r *starts) float64 { return r.GoneSeconds }},
	{"CPU per start: of all", "%.1f ms", func(r *starts) float64 { return r.AllCPUMillis }},
	{"  of the agent", "%.1f ms", func(r *starts) float64 { return r.AgentCPUMillis }},
	{"CPU per deletion: of all", "%.1f ms", func(r *starts) float64 { return r.GoneAllMillis }},
	{"  of the agent", "%.1f ms", func(r *starts) float64 { return r.GoneAgentMillis }},
	{"at rest, memory of all per pod", "%.1f MiB", func(r *starts) float64 { return r.MemoryPerPodMiB }},
	{"  resident in the agent", "%.1f MiB", func(r *starts) float64 { return r.AgentSteadyMiB }},
	{"  CPU of all, % of a core", "%.2f", func(r *starts) float64 { return r.RestAllCPUPercent }},
	{"  CPU of the agent, % of a core", "%.2f", func(r *starts) float64 { return r.RestCPUPercent }},
	{"load average before", "%.1f", func(r *starts) float64 { return r.LoadBefore }},
}

// poolPercentiles gives each round the percentiles of the pods of all rounds: a single round has too few pods for a
// 99th percentile.
func poolPercentiles(rounds []*starts) {
	var all []float64
	for _, r := range rounds {
		all = append(all, r.OneByOneMillis...)
	}
	slices.Sort(all)
	for _, r := range rounds {
		r.OneByOneP50Millis, r.OneByOneP99Millis = percentileOf(all, 50), percentileOf(all, 99)
	}
}

// printStarts writes the table of a scenario with containers.
func (o outcome) printStarts(w io.Writer, agents []string) error {
	agents = slices.DeleteFunc(append(slices.Clone(agents), floorName), func(name string) bool { return len(o.Starts[name]) == 0 })
	fmt.Fprintf(w, "\n%s\n\n", o.scenario)
	if len(agents) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	compared := len(o.Starts["ours"]) > 0 && len(o.Starts["kubelet"]) > 0
	fmt.Fprintf(t, "median of %d", len(o.Starts[agents[0]]))
	for _, name := range agents {
		poolPercentiles(o.Starts[name])
		fmt.Fprintf(t, "\t%s", name)
	}
	if compared {
		fmt.Fprint(t, "\tours / kubelet")
	}
	fmt.Fprintln(t)
	for _, m := range o.startMetrics() {
		fmt.Fprint(t, m.label)
		for _, name := range agents {
			value := medianOf(o.Starts[name], m.of)
			if name == floorName && !(value > 0) { // it has no other figures
				fmt.Fprint(t, "\t")
				continue
			}
			fmt.Fprintf(t, "\t"+m.format, value)
		}
		if compared && medianOf(o.Starts["kubelet"], m.of) > 0 {
			fmt.Fprintf(t, "\t%.2f", medianOf(o.Starts["ours"], m.of)/medianOf(o.Starts["kubelet"], m.of))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, g := range startGoals {
		if text, reached, ok := g.judgeRounds(o.Name, o.Starts); ok {
			fmt.Fprintf(w, "%s  %s\n", reachedOrMissed(reached), text)
		}
	}
	return nil
}

// cellMetrics are the lines of starts on machines of QEMU.
var cellMetrics = []startMetric{
	{"to Running, median", "%.0f ms", oneByOneMedian},
	{"  the longest", "%.0f ms", oneByOneLate},
	{"to gone, median", "%.0f ms", func(r *starts) float64 { return r.GoneP50Millis }},
	{"peak memory of the agent", "%.1f MiB", func(r *starts) float64 { return r.AgentPeakMiB }},
	{"load average before", "%.1f", func(r *starts) float64 { return r.LoadBefore }},
}

// startMetrics returns the lines of the table.
func (o outcome) startMetrics() []startMetric {
	if o.Backend == "qemu" {
		return cellMetrics
	}
	if o.Runtimes {
		return runtimeMetrics
	}
	lines := append(slices.Clone(startMetrics), startMetric{"requests per start", "%.2f", func(r *starts) float64 { return float64(r.Requests.countAll()) / r.Pods }})
	for _, key := range startKeys(o.Starts) {
		lines = append(lines, startMetric{"  " + key, "%.2f", func(r *starts) float64 { return float64(r.Requests[key]) / r.Pods }})
	}
	return lines
}
