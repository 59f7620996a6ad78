// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// goal is what this project's agent should reach, beside another agent in the same run or by itself.
type goal struct {
	label     string
	scenarios []string // empty: all
	against   string   // the agent that it is compared with; "": none
	limit     float64  // of the ratio, or of the value
	format    string   // of the value, where nothing is compared
	of        func(*round) float64
}

var goals = []goal{
	{"all Running", nil, "kwok", 0.9, "", func(r *round) float64 { return r.RunningSeconds }},
	{"all Running", nil, "null", 1.15, "", func(r *round) float64 { return r.RunningSeconds }},
	{"all gone", nil, "null", 1.15, "", func(r *round) float64 { return r.GoneSeconds }},
	{"lag after the last create", []string{"1000"}, "", 0.3, "%.2f s", func(r *round) float64 { return r.RunningLagSeconds }},
	{"agent's CPU per pod life", nil, "kwok", 0.7, "", func(r *round) float64 { return r.AgentCPUMillis }},
	{"agent's CPU per pod life", nil, "null", 1.5, "", func(r *round) float64 { return r.AgentCPUMillis }},
	{"peak memory", []string{"5000", "fleet"}, "kwok", 0.75, "", func(r *round) float64 { return r.AgentPeakMiB }},
	{"peak memory", []string{"nodes"}, "kwok", 1.2, "", func(r *round) float64 { return r.AgentPeakMiB }},
	{"writes of pods per pod life", nil, "", 3.05, "%.2f", func(r *round) float64 { return r.WritesPerPod }},
	{"requests at rest, heartbeats apart", nil, "", 0, "%.0f", func(r *round) float64 {
		if r.Rest == nil {
			return 0
		}
		return float64(r.Rest.Requests.sum() - r.Rest.Requests.heartbeats())
	}},
	{"CPU at rest", []string{"5000"}, "", 0.2, "%.2f %% of a core", func(r *round) float64 {
		if r.Rest == nil {
			return 0
		}
		return r.Rest.CPUPercent
	}},
}

// judgement says whether a goal was reached, and by how much; ok is false if it cannot be told.
func (g goal) judgement(o outcome) (text string, reached, ok bool) {
	mine, theirs := o.Rounds["ours"], o.Rounds[g.against]
	if !g.concerns(o.scenario) || len(mine) == 0 || g.against != "" && len(theirs) == 0 {
		return "", false, false
	}
	value := median(mine, g.of)
	if g.against == "" {
		reached = value <= g.limit
		text = fmt.Sprintf("%s: "+g.format+", goal "+g.format, g.label, value, g.limit)
		return text, reached, true
	}
	ratio := value / median(theirs, g.of)
	return fmt.Sprintf("%s: %.2f x %s, goal %.2f x", g.label, ratio, g.against, g.limit), ratio <= g.limit, true
}

func (g goal) concerns(s scenario) bool {
	for _, name := range g.scenarios {
		if name == s.Name {
			return true
		}
	}
	return len(g.scenarios) == 0
}
