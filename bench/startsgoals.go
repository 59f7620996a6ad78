// SPDX-License-Identifier: Apache-2.0

package main

// startGoals are the goals of scenarios with containers.
var startGoals = append([]goal[*starts]{
	{label: "one after another, median", scenarios: []string{"cri"}, against: "kubelet", limit: 0.95, of: oneByOneMedian},
	{label: "one after another, median", scenarios: []string{"cri"}, against: floorName, limit: 1.05, of: oneByOneMedian},
	{label: "one after another, 99th percentile", scenarios: []string{"cri"}, against: "kubelet", limit: 0.95, of: oneByOneLate},
	{label: "all at once, all Running", scenarios: []string{"cri"}, against: "kubelet", limit: 0.95, of: atOnce},
	{label: "memory of the agent at rest", scenarios: []string{"cri"}, against: "kubelet", limit: 0.6, of: func(r *starts) float64 { return r.AgentSteadyMiB }},
	{label: "peak memory of the agent", scenarios: []string{"cri"}, against: "kubelet", limit: 0.6, of: func(r *starts) float64 { return r.AgentPeakMiB }},
	{label: "CPU at rest, % of a core", scenarios: []string{"cri"}, against: "kubelet", limit: 0.5, of: func(r *starts) float64 { return r.RestCPUPercent }},
	{label: "reads of a pod per start", scenarios: []string{"cri"}, limit: 0, format: "%.2f", of: func(r *starts) float64 { return r.ReadsBeforeWrites }},
	{label: "with a machine on standby: to Running, median", scenarios: []string{"cells-qemu"}, by: "kip-standby", limit: 1500, format: "%.0f ms", of: oneByOneMedian},
	{label: "with a new machine: to Running, median", scenarios: []string{"cells-qemu"}, by: "kip-cold", limit: 20000, format: "%.0f ms", of: oneByOneMedian},
}, append(append(runtimeGoals("gvisor", "kubelet"), runtimeGoals("runc", "before")...),
	goal[*starts]{label: "runc: one after another, median", scenarios: []string{"runtimes"}, by: "runc", against: "kubelet", limit: 1, of: oneByOneMedian})...)

// runtimeGoals returns the goals of this project's agent with a container runtime. It starts containers no
// slower than another agent, its pods are gone two seconds after their grace period, and it needs little work
// for this.
func runtimeGoals(name, against string) []goal[*starts] {
	here := []string{"runtimes"}
	return []goal[*starts]{
		{label: name + ": one after another, median", scenarios: here, by: name, against: against, limit: 1, of: oneByOneMedian},
		{label: name + ": all at once, all Running", scenarios: here, by: name, against: against, limit: 1, of: atOnce},
		{label: name + ": all gone", scenarios: here, by: name, limit: (runtimesGrace.Seconds() + 2), format: "%.2f s", of: func(r *starts) float64 { return r.GoneSeconds }},
		{label: name + ": CPU of the agent per deletion", scenarios: here, by: name, limit: 20, format: "%.1f ms", of: func(r *starts) float64 { return r.GoneAgentMillis }},
	}
}

func oneByOneMedian(r *starts) float64 { return r.OneByOneP50Millis }
func oneByOneLate(r *starts) float64   { return r.OneByOneP99Millis }
func atOnce(r *starts) float64         { return r.AtOnceSeconds }
