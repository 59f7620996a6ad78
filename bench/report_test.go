// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func sampleReport() *report {
	return &report{
		Agents: agentNames, Settings: map[string]string{"ours": "as it is"},
		Scenarios: []outcome{{
			scenario: scenarios[0],
			Rounds: map[string][]*round{
				"ours": {
					{RunningSeconds: 9, AgentCPUMillis: 1.5, AgentPromptMillis: 0.9, WritesPerPod: 3, Requests: requests{"patch pods/status": 2000},
						Rest: &resting{Seconds: 30, Requests: requests{"update leases": 3}, PerMinute: 6}},
					{RunningSeconds: 1, AgentCPUMillis: 1.5, AgentPromptMillis: 0.9, WritesPerPod: 3},
					{RunningSeconds: 2, AgentCPUMillis: 1.5, AgentPromptMillis: 0.9, WritesPerPod: 3, RunningLagSeconds: 0.1},
				},
				"kwok": {{RunningSeconds: 4, AgentCPUMillis: 2, AgentPromptMillis: 1, Rest: &resting{Seconds: 30}}},
			},
			Skipped: map[string]string{"null": "it has no nodes"},
		}},
	}
}

func TestGoalsAreHeldAgainstTheMedian(t *testing.T) {
	o := sampleReport().Scenarios[0]
	got := map[string]bool{}
	for _, g := range goals {
		if text, reached, ok := g.judgeRounds(o.Name, o.Rounds); ok {
			got[text] = reached
		}
	}
	for text, want := range map[string]bool{
		"all Running: 0.50 x kwok, goal 0.90 x":                                        true,
		"agent's CPU per pod life: 0.75 x kwok, goal 1.00 x":                           true,
		"agent's CPU per pod life without events that trail: 0.90 x kwok, goal 0.70 x": false,
		"lag after the last create: 0.00 s, goal 0.30 s":                               true,
		"requests at rest, heartbeats apart: 0, goal 0":                                true,
	} {
		if reached, ok := got[text]; !ok || reached != want {
			t.Errorf("%q: %t, %t, want %t in %v", text, reached, ok, want, got)
		}
	}
	for text := range got {
		if strings.Contains(text, "null") || strings.Contains(text, "peak memory") {
			t.Errorf("%q was judged without figures for it", text)
		}
	}
}

func TestTableNamesEverything(t *testing.T) {
	var out bytes.Buffer
	if err := sampleReport().printTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1000 pods on one node", "ours / kwok", "0.50", "patch pods/status", "at rest for 30 s", "it has no nodes", "missed "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestJSONIsReadable(t *testing.T) {
	var out bytes.Buffer
	if err := sampleReport().printJSON(&out); err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Scenarios[0].Rounds["kwok"][0].AgentCPUMillis != 2 {
		t.Errorf("got %+v, %v", back, err)
	}
}

func TestTableGoesBetweenTheMarkers(t *testing.T) {
	for range 2 { // the second time, one is there
		text, err := insertBlock([]byte("before\n"+intoBegin+"old\n"+intoEnd+"after\n"), []byte("new\n"), intoBegin, intoEnd)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(text), "before\n"+intoBegin+"\n```\nnew\n```\n\n"+intoEnd+"after\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, err := insertBlock([]byte("nothing"), nil, intoBegin, intoEnd); err == nil {
		t.Error("a file without markers was written")
	}
	for _, part := range places {
		page := "../docs/reports/bench.md"
		if part.begin == liqoBegin {
			page = "../docs/reports/liqo-figures.md" // which its own make target writes
		}
		if slices.ContainsFunc(scenarios, func(s scenario) bool { return s.Backend != "" && !s.isCloud() && part.of(s) }) {
			page = "../docs/reports/schedulers-figures.md"
		}
		if slices.ContainsFunc(scenarios, func(s scenario) bool { return (s.hasCells() || s.Backend == "qemu") && part.of(s) }) {
			page = "../docs/reports/kip-cells.md"
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := insertBlock(text, nil, part.begin, part.end); err != nil {
			t.Errorf("%s: %v", page, err)
		}
	}
}

func TestScenariosAreChosenByName(t *testing.T) {
	chosen, err := chooseScenarios("5000,fleet")
	if err != nil || len(chosen) != 2 || chosen[1].Nodes != 100 {
		t.Errorf("got %v, %v", chosen, err)
	}
	all, err := chooseScenarios("all")
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if want := []string{"1000", "5000", "fleet", "nodes", "replicas", "plugin", "remote"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %v, %v, want %v", names, err, want)
	}
	if _, err := parseFlags([]string{"-scenarios=aci", "-pods=20"}); err == nil {
		t.Error("all pods may end by themselves, and none is left to delete")
	}
	if _, err := chooseScenarios("some"); err == nil {
		t.Error("a scenario that does not exist was chosen")
	}
	if names := chosen[1].nodeNames("a"); len(names) != 100 || names[99] != "a-099" || chosen[1].nodePattern("a") != "a-[000-099]" {
		t.Errorf("got %v, %s", names, chosen[1].nodePattern("a"))
	}
	if names := warmUp.nodeNames("a"); len(names) != 1 || names[0] != "a" {
		t.Errorf("got %v", names)
	}
}

func TestAgentsTakePartWhereTheyBelong(t *testing.T) {
	for name, want := range map[string][]string{"1000": {"ours", "kwok", "kwok-parallel", "null", "before"}, "cri": {"ours", "kubelet"}, "runtimes": {"gvisor", "runc", "before", "cri", "kubelet"}, "plugin": {"ours", "plugin"},
		"remote": {"ours", "tensilekube"}, "cells": {"kip"}, "cells-20": {"kip"}, "cells-qemu": {"kip-cold", "kip-standby"}, "liqo": {"liqo", "liqo-vk"}} {
		chosen, err := chooseScenarios(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, agent := range agentNames {
			if chosen[0].suitsAgent(agent) {
				got = append(got, agent)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("scenario %s: got %q, want %q", name, got, want)
		}
	}
}

// TestGoalsOverTheWire: the goals judge the agent over the wire, by ratio and by difference.
func TestGoalsOverTheWire(t *testing.T) {
	o := outcome{scenario: scenario{Name: "plugin", Wire: true}, Rounds: map[string][]*round{
		"ours":   {{AgentCPUMillis: 4, RunningP50Millis: 10, GoneP50Millis: 10}},
		"plugin": {{AgentCPUMillis: 5, RunningP50Millis: 30, GoneP50Millis: 31}},
	}}
	want := map[string]bool{
		"CPU per pod life over the wire: 1.25 x ours, goal 1.25 x":                          true,
		"create to Running over the wire, median of pods: 20 ms more than ours, goal 20 ms": true,
		"delete to gone over the wire, median of pods: 21 ms more than ours, goal 20 ms":    false,
	}
	for _, g := range goals {
		text, reached, ok := g.judgeRounds(o.Name, o.Rounds)
		if g.by != "plugin" {
			continue
		}
		if is, known := want[text]; !ok || !known || is != reached {
			t.Errorf("got %q, reached %t", text, reached)
		}
		delete(want, text)
	}
	if len(want) > 0 {
		t.Errorf("not judged: %v", want)
	}
}

// TestCostsAreOfBothProcesses: the costs of an agent include the process beside it.
func TestCostsAreOfBothProcesses(t *testing.T) {
	self := &process{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
	alone, err := self.peakMemory()
	if err != nil {
		t.Fatal(err)
	}
	both, err := (&process{cmd: self.cmd, beside: self}).peakMemory()
	if err != nil || both < 2*alone {
		t.Errorf("got %d, %v; want twice %d at least", both, err, alone)
	}
}
