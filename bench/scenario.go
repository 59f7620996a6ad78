// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is a number of pods on a number of nodes of one agent.
type scenario struct {
	Name  string `json:"name"`
	Pods  int    `json:"pods"`
	Nodes int    `json:"nodes"`
	// Containers is set if the pods have real containers.
	Containers bool `json:"containers,omitempty"`
	// Runtimes is set if container runtimes are compared.
	Runtimes bool `json:"runtimes,omitempty"`
	// Wire is set if the same provider is compared in the program and over the wire.
	Wire bool `json:"wire,omitempty"`
	// Replicas is set if a single process is compared with several that share the nodes.
	Replicas bool `json:"replicas,omitempty"`
	// Remote is set if the pods run in a second cluster, with the usual tokens of pods.
	Remote bool `json:"remote,omitempty"`
	// Liqo is set if Liqo's controllers make the pods in the second cluster. It needs their program.
	Liqo bool `json:"liqo,omitempty"`
	// Backend is the system of the pods, if it is no cluster. The scenario needs its programs.
	Backend string `json:"backend,omitempty"`
	// Every is the time between two pods that are created, and deleted, so that the quotas of a cloud are kept; 0: none.
	Every time.Duration `json:"every,omitempty"`
	// Idle is the time for which the agent is watched at rest, unless -idle is set; 0 means the default of
	// -idle.
	Idle time.Duration `json:"idle,omitempty"`
	// Restarts means that the cloud restarts containers after any exit code, so no pod ends by itself.
	Restarts bool `json:"restarts,omitempty"`
	// Singles is the number of requests per minute for single pods at rest, by the configuration. They are
	// needed because lists do not have the states of containers.
	Singles int `json:"singles,omitempty"`
	// Settle is the time that the agent runs before its first pod: additional requests after a start are no part
	// of a pod's life.
	Settle time.Duration `json:"settle,omitempty"`
}

// scenarios are all scenarios. A node's number has three digits, so there are 1,000 nodes at most.
var scenarios = []scenario{
	{Name: "1000", Pods: 1000, Nodes: 1},
	{Name: "5000", Pods: 5000, Nodes: 1},
	{Name: "fleet", Pods: 5000, Nodes: 100},
	{Name: "nodes", Pods: 10000, Nodes: 1000},
	{Name: "replicas", Pods: 10000, Nodes: 1000, Replicas: true, Settle: 30 * time.Second},
	{Name: "cri", Pods: 50, Nodes: 1, Containers: true},
	{Name: "runtimes", Pods: 50, Nodes: 1, Containers: true, Runtimes: true},
	{Name: "plugin", Pods: 1000, Nodes: 1, Wire: true},
	{Name: "remote", Pods: 1000, Nodes: 1, Remote: true},
	{Name: "liqo", Pods: 1000, Nodes: 1, Remote: true, Liqo: true},
	{Name: "nomad", Pods: 200, Nodes: 1, Backend: "nomad"},
	{Name: "slurm", Pods: 200, Nodes: 1, Backend: "slurm"},
	{Name: "interlink", Pods: 200, Nodes: 1, Backend: "interlink"},
	{Name: "aci", Pods: 1000, Nodes: 1, Backend: "aci", Every: 100 * time.Millisecond, Idle: 2 * time.Minute, Settle: 2 * time.Minute},
	{Name: "eci", Pods: 1000, Nodes: 1, Backend: "eci", Every: 75 * time.Millisecond, Idle: 2 * time.Minute},
	{Name: "fargate", Pods: 1000, Nodes: 1, Backend: "fargate", Every: 75 * time.Millisecond, Idle: 2 * time.Minute},
	{Name: "stackpath", Pods: 1000, Nodes: 1, Backend: "stackpath", Every: 75 * time.Millisecond, Idle: 2 * time.Minute, Restarts: true, Singles: 60},
	{Name: "zun", Pods: 1000, Nodes: 1, Backend: "zun", Every: 75 * time.Millisecond, Idle: 2 * time.Minute, Singles: 60},
	{Name: "azurebatch", Pods: 1000, Nodes: 1, Backend: "azurebatch", Every: 75 * time.Millisecond, Idle: 2 * time.Minute},
	{Name: "cells-20", Pods: 20, Nodes: 1, Backend: "kip", Every: cellInterval, Idle: 2 * time.Minute},
	{Name: "cells", Pods: 200, Nodes: 1, Backend: "kip", Every: cellInterval, Idle: 2 * time.Minute},
	{Name: "cells-qemu", Pods: 10, Nodes: 1, Backend: "qemu"},
}

// cellInterval is the time between two pods with a machine each: EC2 allows two starts each second.
const cellInterval = 600 * time.Millisecond

// clouds names all scenarios at the emulators of clouds.
const clouds = "clouds"

// isCloud reports whether the backend is the emulator of a cloud.
func (s scenario) isCloud() bool { return slices.Contains(cloudServices, s.Backend) || s.hasCells() }

// hasCells reports whether each pod has a simulated machine.
func (s scenario) hasCells() bool { return s.Backend == "kip" }

// hasEnds reports whether some pods end by themselves while all is at rest.
func (s scenario) hasEnds() bool { return s.isCloud() && !s.Restarts && s.Pods > endings }

// cloudServices are the services with an emulator and no machines.
var cloudServices = []string{"aci", "eci", "fargate", "stackpath", "zun", "azurebatch"}

// singlesOfLife returns how many requests about single pods the configuration allows for each pod, while all are
// created and deleted.
func (s scenario) singlesOfLife() float64 {
	return float64(s.Singles) * 2 * s.Every.Minutes()
}

// runtimesGrace is the grace period of pods in comparisons of container runtimes.
const runtimesGrace = time.Second

// warmUp runs before the other scenarios, because the first pods are more expensive for a new API server.
var warmUp = scenario{Name: "warm-up", Pods: 200, Nodes: 1}

func scenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.Name)
	}
	return append(names, clouds)
}

func chooseScenarios(list string) (chosen []scenario, err error) {
	if list == "all" { // except for containers, which need root, and other backends, which need their programs
		return slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return s.Containers || s.Liqo || s.Backend != "" }), nil
	}
	for name := range strings.SplitSeq(strings.ReplaceAll(list, clouds, strings.Join(cloudServices, ",")), ",") {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("-scenarios: there is no %q; there are %s", name, strings.Join(scenarioNames(), ", "))
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

// pacedTime returns the time of a round that the client spends on quotas, and on pods that end at rest.
func (s scenario) pacedTime(c config) time.Duration {
	if !s.isCloud() {
		return 0
	}
	return s.Settle + 2*time.Duration(s.Pods)*c.podInterval(s) + endings*endingsEvery + endingsPatience
}

// String describes the scenario.
func (s scenario) String() string {
	if s.Runtimes {
		return fmt.Sprintf("%d pods on one node, by what runs their containers", s.Pods)
	}
	if s.Containers {
		return fmt.Sprintf("%d pods with containers on one node", s.Pods)
	}
	if s.Wire {
		return fmt.Sprintf("%d pods on one node, the provider in the program and over the wire", s.Pods)
	}
	if s.Backend == "qemu" {
		return fmt.Sprintf("%d pods on one node, one after another, each on a machine of QEMU", s.Pods)
	}
	if s.hasCells() {
		return fmt.Sprintf("%d pods on one node, each on a simulated machine of %s", s.Pods, backendNames[s.Backend])
	}
	if s.Backend != "" {
		return fmt.Sprintf("%d pods on one node, at %s", s.Pods, backendNames[s.Backend])
	}
	if s.Liqo {
		return fmt.Sprintf("%d pods with tokens on one node, in a second cluster where Liqo makes them of ShadowPods", s.Pods)
	}
	if s.Remote {
		return fmt.Sprintf("%d pods with tokens on one node, simulated, and in a second cluster where they are simulated", s.Pods)
	}
	if s.Nodes == 1 {
		return fmt.Sprintf("%d pods on one node", s.Pods)
	}
	if s.Replicas {
		return fmt.Sprintf("%d pods on %d nodes, of one process and of three that share them", s.Pods, s.Nodes)
	}
	return fmt.Sprintf("%d pods on %d nodes of one process", s.Pods, s.Nodes)
}

// nodeNames returns the names of the nodes: the prefix, if there is only one node, or the prefix with a number
// of three digits.
func (s scenario) nodeNames(prefix string) []string {
	if s.Nodes == 1 {
		return []string{prefix}
	}
	names := make([]string, s.Nodes)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", prefix, i)
	}
	return names
}

// nodePattern returns a pattern for the same nodes, in the form that virtual-kubelet accepts.
func (s scenario) nodePattern(prefix string) string {
	return fmt.Sprintf("%s-[000-%03d]", prefix, s.Nodes-1)
}
