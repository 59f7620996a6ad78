// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func sampleRuntimes() outcome {
	s, _ := chooseScenarios("runtimes")
	return outcome{scenario: s[0], Starts: map[string][]*starts{
		"gvisor": {
			{OneByOneMillis: []float64{300, 100, 200}, AtOnceSeconds: 9, GoneSeconds: 2.5, GoneAgentMillis: 20, MemoryPerPodMiB: 41},
			{OneByOneMillis: []float64{600, 500, 400}, AtOnceSeconds: 1, GoneSeconds: 3.5, GoneAgentMillis: 20, MemoryPerPodMiB: 42},
			{OneByOneMillis: []float64{700, 800, 900}, AtOnceSeconds: 2, GoneSeconds: 3.5, GoneAgentMillis: 21, MemoryPerPodMiB: 40},
		},
		"kubelet": {{OneByOneMillis: []float64{250}, AtOnceSeconds: 4}},
		"runc":    {{OneByOneMillis: []float64{100}, AtOnceSeconds: 4}},
	}}
}

// TestTableOfRuntimes: percentiles cover the pods of all rounds, other figures are the median of the rounds. A
// goal is judged only where both of its figures exist.
func TestTableOfRuntimes(t *testing.T) {
	var out bytes.Buffer
	if err := sampleRuntimes().printStarts(&out, agentNames); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.FieldsFunc(out.String(), func(r rune) bool { return r == ' ' }), " ")
	for _, want := range []string{
		"median of 3 gvisor runc kubelet\n",
		"one after another, median 500 ms 100 ms 250 ms\n",
		"99th percentile 900 ms",
		"at rest, memory of all per pod 41.0 MiB",
		"missed gvisor: one after another, median: 2.00 x kubelet, goal 1.00 x\n",
		"reached gvisor: all at once, all Running: 0.50 x kubelet, goal 1.00 x\n",
		"missed gvisor: all gone: 3.50 s, goal 3.00 s\n",
		"reached gvisor: CPU of the agent per deletion: 20.0 ms, goal 20.0 ms\n",
		"reached runc: one after another, median: 0.40 x kubelet, goal 1.00 x\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	for _, not := range []string{"x before", "ours", "requests"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is in:\n%s", not, got)
		}
	}
}

// TestGoalsBesideAKubelet: a scenario is judged by its own goals only.
func TestGoalsBesideAKubelet(t *testing.T) {
	s, _ := chooseScenarios("cri")
	o := outcome{scenario: s[0], Starts: map[string][]*starts{
		"ours":    {{OneByOneMillis: []float64{90}, AgentSteadyMiB: 7, Pods: 1, Requests: requests{"get pods": 2}, ReadsBeforeWrites: 2}},
		"kubelet": {{OneByOneMillis: []float64{100}, AgentSteadyMiB: 10, Pods: 1}},
	}}
	var out bytes.Buffer
	if err := o.printStarts(&out, agentNames); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ours / kubelet", "  get pods",
		"reached  one after another, median: 0.90 x kubelet, goal 0.95 x\n",
		"missed   memory of the agent at rest: 0.70 x kubelet, goal 0.60 x\n",
		"missed   reads of a pod per start: 2.00, goal 0.00\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "deletion") {
		t.Errorf("a goal of another scenario is in:\n%s", out.String())
	}
}

func TestBeforeTakesPartWhenItIsNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
		ok   bool
	}{
		{nil, false, true},
		{[]string{"-before=x"}, true, true},
		{[]string{"-before=x", "-agents=gvisor"}, false, true},
		{[]string{"-agents=before"}, false, false},
	} {
		cfg, err := parseFlags(append(c.args, "-scenarios=runtimes", "-pods=5"))
		if (err == nil) != c.ok {
			t.Errorf("%q: got error %v", c.args, err)
			continue
		}
		if c.ok && (strings.Contains(strings.Join(cfg.agents, ","), "before") != c.want || cfg.scenarios[0].Pods != 5) {
			t.Errorf("%q: got %q and %d pods", c.args, cfg.agents, cfg.scenarios[0].Pods)
		}
	}
}

// TestPodsOfRuntimes: the pods of this scenario have a short grace period, and deaf pods use it up. The pods of
// other scenarios do not change.
func TestPodsOfRuntimes(t *testing.T) {
	l := &life{scenario: sampleRuntimes().scenario, nodes: []string{"n"}}
	p := l.newPod(0)
	if grace := p.Spec.TerminationGracePeriodSeconds; grace == nil || time.Duration(*grace)*time.Second != runtimesGrace || p.Spec.Containers[0].Args != nil {
		t.Errorf("got %+v", p.Spec)
	}
	l.deaf = true
	if args := l.newPod(0).Spec.Containers[0].Args; len(args) != 1 {
		t.Errorf("got arguments %q", args)
	}
	if p := (&life{scenario: warmUp, nodes: []string{"n"}}).newPod(0); p.Spec.TerminationGracePeriodSeconds != nil {
		t.Errorf("got %+v", p.Spec)
	}
}
