// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestObjectsOfATenant(t *testing.T) {
	objects, err := parseObjects(fmt.Appendf(nil, tenantObjects, "tenant", "node", "YQ=="))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, "/"))
	}
	want := []string{"Namespace//tenant", "Secret/tenant/foreign", "ForeignCluster//foreign", "VirtualNode/tenant/node", "NamespaceMap/tenant/foreign"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := parseObjects([]byte("kind: Other")); err == nil {
		t.Error("an object of a kind that nobody knows is taken")
	}
}

// TestGoalsBesideLiqo: this project's agent is judged beside Liqo's, by its requests to both API servers and by
// the delay that it adds.
func TestGoalsBesideLiqo(t *testing.T) {
	s, err := chooseScenarios("liqo")
	if err != nil {
		t.Fatal(err)
	}
	r := &report{Agents: agentNames, Settings: map[string]string{}, Scenarios: []outcome{{scenario: s[0], Rounds: map[string][]*round{
		"liqo": {{AgentCPUMillis: 6, Requests: requests{"patch pods": 3000},
			Remote: &remote{RunningLagP50Millis: 50, Requests: requests{"create shadowpods": 2000}, Pods: 1000}}},
		"liqo-vk": {{AgentCPUMillis: 10, Requests: requests{"patch pods": 6000},
			Remote: &remote{RunningLagP50Millis: 51, Requests: requests{"create shadowpods": 4000}, Pods: 1000}}},
	}}}}
	var out bytes.Buffer
	if err := r.printTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"missed   CPU per pod life, with Liqo: 0.60 x liqo-vk, goal 0.50 x",
		"reached  requests to both API servers per pod life: 0.50 x liqo-vk, goal 0.50 x",
		"reached  to Running beyond the lower cluster, median of pods: -1 ms more than liqo-vk, goal 0 ms",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	all, err := chooseScenarios("all")
	if err != nil || slices.ContainsFunc(all, func(s scenario) bool { return s.Liqo }) {
		t.Errorf("all scenarios are %v (%v), want those that need no program of Liqo", all, err)
	}
}
