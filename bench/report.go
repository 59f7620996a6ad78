// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// metric is one line of the table.
type metric struct {
	label  string
	format string
	goal   float64 // not to be exceeded; 0 is none
	of     func(round) float64
}

var metrics = []metric{
	{"all created", "%.2f s", 0, func(r round) float64 { return r.CreatedSeconds }},
	{"all Running", "%.2f s", 0, func(r round) float64 { return r.RunningSeconds }},
	{"  lag after the last create", "%.2f s", 2, func(r round) float64 { return r.RunningLagSeconds }},
	{"  per pod, median", "%.0f ms", 0, func(r round) float64 { return r.RunningP50Millis }},
	{"  per pod, 99th percentile", "%.0f ms", 0, func(r round) float64 { return r.RunningP99Millis }},
	{"all marked as deleted", "%.2f s", 0, func(r round) float64 { return r.MarkedSeconds }},
	{"all gone", "%.2f s", 0, func(r round) float64 { return r.GoneSeconds }},
	{"  lag after the last delete", "%.2f s", 3, func(r round) float64 { return r.GoneLagSeconds }},
	{"  per pod, median", "%.0f ms", 0, func(r round) float64 { return r.GoneP50Millis }},
	{"  per pod, 99th percentile", "%.0f ms", 0, func(r round) float64 { return r.GoneP99Millis }},
	{"CPU per pod life: node", "%.2f ms", 0, func(r round) float64 { return r.AgentCPUMillis }},
	{"  control plane", "%.2f ms", 0, func(r round) float64 { return r.ClusterCPUMillis }},
	{"  client", "%.2f ms", 0, func(r round) float64 { return r.ClientCPUMillis }},
	{"peak memory of the node", "%.1f MiB", 0, func(r round) float64 { return r.AgentPeakMiB }},
	{"watch of the client resumed", "%.0f", 0, func(r round) float64 { return r.WatchResumed }},
	{"load average before", "%.1f", 0, func(r round) float64 { return r.LoadBefore }},
}

// summary returns the smallest, the middle and the greatest value of a metric. Of an even number of
// rounds, the middle is the greater one of two: no round is made up.
func (m metric) summary(rounds []round) (lowest, median, greatest float64) {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = m.of(r)
	}
	slices.Sort(values)
	return values[0], values[len(values)/2], values[len(values)-1]
}

// missed names the goals that the median misses.
func (r *report) missed() (missed []string) {
	for _, m := range metrics {
		if _, median, _ := m.summary(r.Rounds); m.goal > 0 && median > m.goal {
			missed = append(missed, fmt.Sprintf("%s: "+m.format+", goal "+m.format, strings.TrimSpace(m.label), median, m.goal))
		}
	}
	return missed
}

func (r *report) printJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func (r *report) printTable(w io.Writer) error {
	fmt.Fprintf(w, "%s (%s), provider mock: %d pods on one node, %d workers, %d CPUs, %s\n\n",
		r.Agent, r.Settings, r.Pods, r.Workers, r.CPUs, r.Began.Format("2006-01-02 15:04 MST"))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "%d rounds\tmin\tmedian\tmax\tgoal\t", len(r.Rounds))
	if r.Defaults != nil {
		fmt.Fprint(t, "default limits\t")
	}
	fmt.Fprintln(t)
	for _, m := range metrics {
		lowest, median, greatest := m.summary(r.Rounds)
		fmt.Fprintf(t, "%s\t"+m.format+"\t"+m.format+"\t"+m.format+"\t%s\t", m.label, lowest, median, greatest, m.verdict(median))
		if r.Defaults != nil {
			fmt.Fprintf(t, m.format+"\t", m.of(*r.Defaults))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil || r.Counted == nil {
		return err
	}
	return r.Counted.print(w, r.Pods)
}

func (m metric) verdict(median float64) string {
	switch {
	case m.goal == 0:
		return ""
	case median > m.goal:
		return fmt.Sprintf("%g s: missed", m.goal)
	}
	return fmt.Sprintf("%g s: met", m.goal)
}

func (r *counted) print(w io.Writer, pods int) error {
	fmt.Fprintf(w, "\nOne more round, with an audit log (lag after the last create %.2f s):\n\n", r.RunningLag)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "requests of the node\tfor %d pods\tper pod\n", pods)
	for _, key := range r.Requests.ordered() {
		fmt.Fprintf(t, "  %s\t%d\t%.2f\n", key, r.Requests[key], float64(r.Requests[key])/float64(pods))
	}
	fmt.Fprintf(t, "  sum\t%d\t%.2f\n", r.Requests.sum(), r.RequestsPerPod)
	fmt.Fprintf(t, "  of them writes of pods\t\t%.2f\n", r.WritesPerPod)
	fmt.Fprintf(t, "  of them events\t\t%.2f\n", r.EventsPerPod)
	fmt.Fprintf(t, "requests after all were Running\t\t%.0f s more\n", r.EventsTrail)
	fmt.Fprintf(t, "CPU per pod life: node, until the last request\t\t%.2f ms\n", r.AgentCPUMillis)
	fmt.Fprintf(t, "idle for %.0f s: CPU of the node\t\t%.2f %% of a core\n", r.IdleSeconds, r.IdleCPUPercent)
	fmt.Fprintf(t, "  requests\t%d\t%.1f a minute\n", r.IdleRequests.sum(), r.IdlePerMinute)
	for _, key := range r.IdleRequests.ordered() {
		fmt.Fprintf(t, "  %s\t%d\t\n", key, r.IdleRequests[key])
	}
	return t.Flush()
}

// ordered returns the kinds of requests, the most frequent first.
func (r requests) ordered() []string {
	keys := make([]string, 0, len(r))
	for key := range r {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if r[a] != r[b] {
			return r[b] - r[a]
		}
		return strings.Compare(a, b)
	})
	return keys
}
