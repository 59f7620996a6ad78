// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// metric is one line of the table.
type metric struct {
	label  string
	format string
	of     func(*round) float64
}

var metrics = []metric{
	{"all created", "%.2f s", func(r *round) float64 { return r.CreatedSeconds }},
	{"all Running", "%.2f s", func(r *round) float64 { return r.RunningSeconds }},
	{"  lag after the last create", "%.2f s", func(r *round) float64 { return r.RunningLagSeconds }},
	{"  per pod, median", "%.0f ms", func(r *round) float64 { return r.RunningP50Millis }},
	{"  per pod, 99th percentile", "%.0f ms", func(r *round) float64 { return r.RunningP99Millis }},
	{"all marked as deleted", "%.2f s", func(r *round) float64 { return r.MarkedSeconds }},
	{"all gone", "%.2f s", func(r *round) float64 { return r.GoneSeconds }},
	{"  lag after the last delete", "%.2f s", func(r *round) float64 { return r.GoneLagSeconds }},
	{"  per pod, median", "%.0f ms", func(r *round) float64 { return r.GoneP50Millis }},
	{"  per pod, 99th percentile", "%.0f ms", func(r *round) float64 { return r.GoneP99Millis }},
	{"CPU per pod life: agent", "%.2f ms", func(r *round) float64 { return r.AgentCPUMillis }},
	{"  without events that trail", "%.2f ms", func(r *round) float64 { return r.AgentPromptMillis }},
	{"  control plane", "%.2f ms", func(r *round) float64 { return r.ClusterCPUMillis }},
	{"  client", "%.2f ms", func(r *round) float64 { return r.ClientCPUMillis }},
	{"peak memory of the agent", "%.1f MiB", func(r *round) float64 { return r.AgentPeakMiB }},
	{"watch of the client resumed", "%.0f", func(r *round) float64 { return r.WatchResumed }},
	{"load average before", "%.1f", func(r *round) float64 { return r.LoadBefore }},
}

// medianOf returns the middle of the values. For an even number of rounds it returns the greater of the two middle
// values, and never a value that no round has.
func medianOf[R any](rounds []R, of func(R) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func (r *report) printJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func (r *report) printTable(w io.Writer) error {
	pace := ""
	if r.Every > 0 {
		pace = fmt.Sprintf("a pod each %s, ", r.Every)
	}
	fmt.Fprintf(w, "%d CPUs, %d workers, %s%s\n", r.CPUs, r.Workers, pace, r.Began.Format("2006-01-02 15:04 MST"))
	for _, name := range r.Agents {
		if r.Settings[name] != "" {
			fmt.Fprintf(w, "  %-7s %s\n", name, r.Settings[name])
		}
	}
	for _, o := range r.Scenarios {
		show := o.printTable
		if len(o.Starts) > 0 {
			show = o.printStarts
		}
		if err := show(w, r.Agents); err != nil {
			return err
		}
	}
	return nil
}

// printTable writes the table of one scenario: a column per agent, and the ratio of ours to another agent's value.
func (o outcome) printTable(w io.Writer, agents []string) error {
	agents = slices.DeleteFunc(slices.Clone(agents), func(name string) bool { return len(o.Rounds[name]) == 0 })
	fmt.Fprintf(w, "\n%s\n\n", o.scenario)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if len(agents) > 0 {
		o.printHeader(t, agents)
		for _, m := range metrics {
			o.printLine(t, agents, m.label, m.format, m.of)
		}
		o.printRequests(t, agents)
		o.printRest(t, agents)
		o.printRemote(t, agents)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(o.Skipped)) {
		fmt.Fprintf(w, "%s is left out: %s\n", name, o.Skipped[name])
	}
	fmt.Fprintln(w)
	for _, g := range goals {
		if text, reached, ok := g.judgeRounds(o.Name, o.Rounds); ok {
			fmt.Fprintf(w, "%s  %s\n", reachedOrMissed(reached), text)
		}
	}
	return nil
}

// printHeader names the columns.
func (o outcome) printHeader(t io.Writer, agents []string) {
	fmt.Fprintf(t, "median of %d", len(o.Rounds[agents[0]]))
	for _, name := range agents {
		fmt.Fprintf(t, "\t%s", name)
	}
	for _, name := range o.otherAgents(agents) {
		fmt.Fprintf(t, "\tours / %s", name)
	}
	fmt.Fprintln(t)
}

// printLine writes one line of the table.
func (o outcome) printLine(t io.Writer, agents []string, label, format string, of func(*round) float64) {
	fmt.Fprint(t, label)
	for _, name := range agents {
		fmt.Fprintf(t, "\t"+format, medianOf(o.Rounds[name], of))
	}
	for _, name := range o.otherAgents(agents) {
		if theirs := medianOf(o.Rounds[name], of); theirs > 0 {
			fmt.Fprintf(t, "\t%.2f", medianOf(o.Rounds["ours"], of)/theirs)
		} else {
			fmt.Fprint(t, "\t")
		}
	}
	fmt.Fprintln(t)
}

// otherAgents returns the agents to compare with ours.
func (o outcome) otherAgents(agents []string) []string {
	if len(o.Rounds["ours"]) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(agents), func(name string) bool { return name == "ours" })
}

// printRequests writes the requests per pod life by kind, the most frequent first.
func (o outcome) printRequests(t io.Writer, agents []string) {
	all := requests{}
	for _, name := range agents {
		for _, r := range o.Rounds[name] {
			all.add(r.Requests)
		}
	}
	pods := float64(o.Pods)
	o.printLine(t, agents, "requests per pod life", "%.2f", func(r *round) float64 { return float64(r.Requests.countAll()) / pods })
	o.printLine(t, agents, "  of them writes of pods", "%.2f", func(r *round) float64 { return r.WritesPerPod })
	o.printLine(t, agents, "  of them events", "%.2f", func(r *round) float64 { return r.EventsPerPod })
	for _, key := range all.orderedKinds() {
		o.printLine(t, agents, "  "+key, "%.2f", func(r *round) float64 { return float64(r.Requests[key]) / pods })
	}
}

// printRest writes the activity of the agents at rest.
func (o outcome) printRest(t io.Writer, agents []string) {
	first := outcome{scenario: o.scenario, Rounds: map[string][]*round{}}
	all := requests{}
	for _, name := range agents {
		if o.Rounds[name][0].Rest == nil {
			return
		}
		first.Rounds[name] = o.Rounds[name][:1]
		all.add(o.Rounds[name][0].Rest.Requests)
	}
	seconds := first.Rounds[agents[0]][0].Rest.Seconds
	first.printLine(t, agents, fmt.Sprintf("at rest for %.0f s: CPU, %% of a core", seconds), "%.2f", func(r *round) float64 { return r.Rest.CPUPercent })
	first.printLine(t, agents, "  requests a minute", "%.1f", func(r *round) float64 { return r.Rest.PerMinute })
	for _, key := range all.orderedKinds() {
		first.printLine(t, agents, "  "+key, "%.0f", func(r *round) float64 { return float64(r.Rest.Requests[key]) })
	}
}
