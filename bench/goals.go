// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
)

// goal is a goal for this project's agent, beside another agent in the same run or by itself.
type goal[R any] struct {
	label     string
	scenarios []string // empty: all
	against   string   // the agent to compare with; "": no comparison
	limit     float64  // of the ratio, or of the value
	format    string   // of the value, where nothing is compared
	of        func(R) float64
	by        string // the agent of the goal; "": ours
	more      bool   // the limit is for the difference to the other agent, not the ratio
}

var goals = append([]goal[*round]{
	{label: "all Running", against: "kwok", limit: 0.9, of: func(r *round) float64 { return r.RunningSeconds }},
	{label: "all Running", against: "null", limit: 1.15, of: func(r *round) float64 { return r.RunningSeconds }},
	{label: "all gone", against: "null", limit: 1.15, of: func(r *round) float64 { return r.GoneSeconds }},
	{label: "lag after the last create", scenarios: []string{"1000"}, limit: 0.3, format: "%.2f s", of: func(r *round) float64 { return r.RunningLagSeconds }},
	{label: "agent's CPU per pod life", against: "null", limit: 1.5, of: func(r *round) float64 { return r.AgentCPUMillis }},
	{label: "agent's CPU per pod life", against: "kwok", limit: 1, of: func(r *round) float64 { return r.AgentCPUMillis }},
	{label: "agent's CPU per pod life without events that trail", against: "kwok", limit: 0.7, of: func(r *round) float64 { return r.AgentPromptMillis }},
	{label: "all Running", against: "before", limit: 1.03, of: func(r *round) float64 { return r.RunningSeconds }},
	{label: "all gone", against: "before", limit: 1.03, of: func(r *round) float64 { return r.GoneSeconds }},
	{label: "agent's CPU per pod life", against: "before", limit: 1.03, of: func(r *round) float64 { return r.AgentCPUMillis }},
	{label: "peak memory", against: "before", limit: 1.03, of: func(r *round) float64 { return r.AgentPeakMiB }},
	{label: "peak memory", scenarios: []string{"5000", "fleet"}, against: "kwok", limit: 1, of: func(r *round) float64 { return r.AgentPeakMiB }},
	{label: "peak memory", scenarios: []string{"nodes"}, against: "kwok", limit: 1.2, of: func(r *round) float64 { return r.AgentPeakMiB }},
	{label: "writes of pods per pod life", limit: 3.05, format: "%.2f", of: func(r *round) float64 { return r.WritesPerPod }},
	{label: "requests at rest, heartbeats apart", limit: 0, format: "%.0f", of: func(r *round) float64 {
		if r.Rest == nil {
			return 0
		}
		return float64(r.Rest.Requests.countAll() - r.Rest.Requests.countHeartbeats())
	}},
	{label: "CPU at rest", scenarios: []string{"5000"}, limit: 0.2, format: "%.2f %% of a core", of: func(r *round) float64 {
		if r.Rest == nil {
			return 0
		}
		return r.Rest.CPUPercent
	}},
	{label: "CPU per pod life over the wire", scenarios: []string{"plugin"}, by: "plugin", against: "ours", limit: 1.25,
		of: func(r *round) float64 { return r.AgentCPUMillis }},
	{label: "create to Running over the wire, median of pods", scenarios: []string{"plugin"}, by: "plugin", against: "ours", limit: 20, more: true,
		format: "%.0f ms", of: func(r *round) float64 { return r.RunningP50Millis }},
	{label: "delete to gone over the wire, median of pods", scenarios: []string{"plugin"}, by: "plugin", against: "ours", limit: 20, more: true,
		format: "%.0f ms", of: func(r *round) float64 { return r.GoneP50Millis }},
	{label: "to Running beyond the lower cluster, median of pods", scenarios: []string{"remote"}, by: "tensilekube", limit: 150, format: "%.0f ms",
		of: func(r *round) float64 { return r.Remote.RunningLagP50Millis }},
	{label: "requests to the lower API server per pod life", scenarios: []string{"remote"}, by: "tensilekube", limit: 6, format: "%.2f",
		of: func(r *round) float64 { return r.Remote.perPod() }},
	{label: "lists of the lower cluster at rest", scenarios: []string{"remote"}, by: "tensilekube", limit: 0, format: "%.0f",
		of: func(r *round) float64 { return float64(r.Remote.listsAtRest()) }},
	{label: "CPU per pod life with a second cluster", scenarios: []string{"remote"}, by: "tensilekube", against: "ours", limit: 2,
		of: func(r *round) float64 { return r.AgentCPUMillis }},
	{label: "peak memory with a second cluster", scenarios: []string{"remote"}, by: "tensilekube", limit: 150, format: "%.0f MiB",
		of: func(r *round) float64 { return r.AgentPeakMiB }},
	{label: "CPU per pod life, with Liqo", scenarios: []string{"liqo"}, by: "liqo", against: "liqo-vk", limit: 0.5,
		of: func(r *round) float64 { return r.AgentCPUMillis }},
	{label: "requests to both API servers per pod life", scenarios: []string{"liqo"}, by: "liqo", against: "liqo-vk", limit: 0.5, of: (*round).toBoth},
	{label: "to Running beyond the lower cluster, median of pods", scenarios: []string{"liqo"}, by: "liqo", against: "liqo-vk", limit: 0, more: true,
		format: "%.0f ms", of: func(r *round) float64 { return r.Remote.RunningLagP50Millis }},
	{label: "to Running beyond Nomad, median of pods", scenarios: []string{"nomad"}, by: "nomad", limit: 1000, format: "%.0f ms",
		of: func(r *round) float64 { return r.Remote.RunningLagP50Millis }},
	{label: "to Running from the start of the task, median of pods", scenarios: []string{"nomad"}, by: "nomad", limit: 1000, format: "%.0f ms",
		of: func(r *round) float64 { return r.Remote.StartLagP50Millis }},
	{label: "requests to Nomad per pod life", scenarios: []string{"nomad"}, by: "nomad", limit: 4, format: "%.2f", of: func(r *round) float64 { return r.Remote.perPod() }},
	{label: "requests to Nomad at rest, a minute", scenarios: []string{"nomad"}, by: "nomad", limit: 2, format: "%.1f", of: (*round).restPerMinute},
	{label: "to Running beyond Slurm, median of pods", scenarios: []string{"slurm"}, by: "slurm", limit: 3000, format: "%.0f ms",
		of: func(r *round) float64 { return r.Remote.RunningLagP50Millis }},
	{label: "to Running from the start of the job, median of pods", scenarios: []string{"slurm"}, by: "slurm", limit: 3000, format: "%.0f ms",
		of: func(r *round) float64 { return r.Remote.StartLagP50Millis }},
	{label: "commands of Slurm per pod life", scenarios: []string{"slurm"}, by: "slurm", limit: 4, format: "%.2f", of: func(r *round) float64 { return r.Remote.perPod() }},
	{label: "commands of Slurm at rest, a minute", scenarios: []string{"slurm"}, by: "slurm", limit: 10, format: "%.1f", of: (*round).restPerMinute},
	{label: "to Running beyond interLink's server, median of pods", scenarios: []string{"interlink"}, by: "interlink", against: "interlink-vk", limit: 0.5,
		of: func(r *round) float64 { return r.Remote.RunningLagP50Millis }},
	{label: "create to Running, median of pods", scenarios: []string{"interlink"}, by: "interlink", against: "interlink-vk", limit: 0.5,
		of: func(r *round) float64 { return r.RunningP50Millis }},
	{label: "CPU per pod life, with interLink", scenarios: []string{"interlink"}, by: "interlink", against: "interlink-vk", limit: 0.5,
		of: func(r *round) float64 { return r.AgentCPUMillis }},
	{label: "requests to interLink's server at rest, a minute", scenarios: []string{"interlink"}, by: "interlink", limit: 130, format: "%.1f", of: (*round).restPerMinute},
}, slices.Concat(cloudGoals(), cellGoals())...)

// lagByPolling and lagByPush are the longest times, in milliseconds, until a change is in the status.
const lagByPolling, lagByPush = 3000, 500

// endGoal is the label of the goal about pods with an end of their own.
const endGoal = "to the end of one that ends at rest, median of pods"

// cloudGoals returns the goals at the emulators of clouds. They are the same for each cloud except for
// differences of its scenario.
func cloudGoals() (all []goal[*round]) {
	for _, name := range cloudServices {
		s := scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.Name == name })]
		of := "to " + backendNames[name]
		for _, g := range []goal[*round]{
			{label: "requests " + of + " per pod life", limit: 4 + s.singlesOfLife(), format: "%.2f", of: func(r *round) float64 { return r.Remote.perPod() }},
			{label: "requests " + of + " at rest, a minute", limit: 15 + float64(s.Singles), format: "%.1f", of: (*round).restPerMinute},
			{label: "to Running beyond " + backendNames[name] + ", median of pods", limit: lagByPolling, format: "%.0f ms", of: func(r *round) float64 { return r.Remote.RunningLagP50Millis }},
			{label: endGoal, limit: lagByPolling, format: "%.0f ms", of: func(r *round) float64 { return r.Remote.ExitLagP50Millis }},
			{label: "requests " + of + " that were refused for their rate", limit: 0, format: "%.0f", of: func(r *round) float64 { return float64(r.Remote.countRefused()) }},
			{label: "peak memory", limit: 100, format: "%.1f MiB", of: func(r *round) float64 { return r.AgentPeakMiB }},
		} {
			if s.Restarts && g.label == endGoal {
				continue
			}
			g.scenarios, g.by = []string{name}, name
			all = append(all, g)
			if g.by = name + pushed; slices.Contains(agentNames, g.by) {
				g.label += ", with a queue"
				if g.limit == lagByPolling {
					g.limit = lagByPush
				}
				all = append(all, g)
			}
		}
	}
	return all
}

// cellGoals returns the goals at simulated machines. The limit of requests at rest is the same for 20 and for 200 machines.
func cellGoals() []goal[*round] {
	all := []goal[*round]{
		{label: "memory that the machines add", scenarios: []string{"cells"}, limit: 60, format: "%.1f MiB", of: func(r *round) float64 { return r.AgentAddedMiB }},
		{label: "requests to EC2 at rest, a minute", limit: 15, format: "%.1f", of: (*round).restPerMinute},
		{label: "requests to EC2 per pod life", scenarios: []string{"cells"}, limit: 4, format: "%.2f", of: func(r *round) float64 { return r.Remote.perPod() }},
		{label: "requests to EC2 that were refused for their rate", limit: 0, format: "%.0f", of: func(r *round) float64 { return float64(r.Remote.countRefused()) }},
		{label: "to Running beyond the agent of a machine, median of pods", limit: lagByPush, format: "%.0f ms", of: func(r *round) float64 { return r.Remote.RunningLagP50Millis }},
		{label: endGoal, scenarios: []string{"cells"}, limit: lagByPush, format: "%.0f ms", of: func(r *round) float64 { return r.Remote.ExitLagP50Millis }},
		{label: "instances that are left when all pods are gone", limit: 0, format: "%.0f", of: func(r *round) float64 { return float64(r.Remote.Left["instances"]) }},
	}
	for i := range all {
		all[i].by = "kip"
		if len(all[i].scenarios) == 0 {
			all[i].scenarios = []string{"cells-20", "cells"}
		}
	}
	return all
}

// judgeRounds returns the result of a goal; ok is false if it is unknown.
func (g goal[R]) judgeRounds(scenario string, rounds map[string][]R) (text string, reached, ok bool) {
	mine, theirs := rounds[cmp.Or(g.by, "ours")], rounds[g.against]
	if !g.concernsScenario(scenario) || len(mine) == 0 || g.against != "" && len(theirs) == 0 {
		return "", false, false
	}
	value := medianOf(mine, g.of)
	if g.against == "" {
		reached = value <= g.limit
		text = fmt.Sprintf("%s: "+g.format+", goal "+g.format, g.label, value, g.limit)
		return text, reached, true
	}
	if g.more {
		value -= medianOf(theirs, g.of)
		return fmt.Sprintf("%s: "+g.format+" more than %s, goal "+g.format, g.label, value, g.against, g.limit), value <= g.limit, true
	}
	ratio := value / medianOf(theirs, g.of)
	return fmt.Sprintf("%s: %.2f x %s, goal %.2f x", g.label, ratio, g.against, g.limit), ratio <= g.limit, true
}

func (g goal[R]) concernsScenario(scenario string) bool {
	return len(g.scenarios) == 0 || slices.Contains(g.scenarios, scenario)
}

func reachedOrMissed(reached bool) string {
	return map[bool]string{true: "reached", false: "missed "}[reached]
}
