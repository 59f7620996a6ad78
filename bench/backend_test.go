// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Time{
		"1700000000":          time.Unix(1700000000, 0),
		"1700000000.05\n":     time.Unix(1700000000, 50_000_000),
		"1700000000.123456":   time.Unix(1700000000, 123_456_000),
		"1700000000.00000001": time.Unix(1700000000, 10),
	} {
		if got, err := parseSeconds(text); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "N/A", "Unknown", "17.x", "1.0000000001"} {
		if got, err := parseSeconds(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

// known is a backend whose answers a test chooses, one after the other.
type known struct {
	ledger
	answers []map[string]lived
}

func (k *known) podLives(context.Context, string) (map[string]lived, error) {
	if len(k.answers) == 0 {
		return nil, errors.New("asked too often")
	}
	answer := k.answers[0]
	k.answers = k.answers[1:]
	return answer, nil
}

func (*known) stop() {}

// TestLivesAreWaitedFor: awaitLives waits until the backend knows both times of each pod.
func TestLivesAreWaitedFor(t *testing.T) {
	at := time.Unix(1700000000, 0)
	whole := lived{began: at, ended: at}
	b := &known{answers: []map[string]lived{{}, {"pod-0": whole, "pod-1": {began: at}}, {"pod-0": whole, "pod-1": {ended: at}}, {"pod-0": whole, "pod-1": whole, "other": {}}}}
	all, err := awaitLives(t.Context(), b, "ns", 2)
	if err != nil || len(all) != 2 || all[1] != whole || len(b.answers) != 0 {
		t.Errorf("got %v, %v, with %d answers left", all, err, len(b.answers))
	}
	if _, err := awaitLives(t.Context(), b, "ns", 2); err == nil {
		t.Error("an error of the backend is none")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := awaitLives(ctx, &known{answers: []map[string]lived{{}, {}}}, "ns", 3); err == nil || !strings.Contains(err.Error(), "3 pods") {
		t.Errorf("got %v, want that 3 pods are waited for", err)
	}
}

func TestLagsBeyondABackend(t *testing.T) {
	at := time.Unix(1700000000, 0)
	after := func(millis ...int) (all []time.Time) {
		for _, m := range millis {
			all = append(all, at.Add(time.Duration(m)*time.Millisecond))
		}
		return all
	}
	r := remote{}
	k := lived{started: at, began: at.Add(10 * time.Millisecond), ended: at}
	r.setLags([]lived{k, k, k}, phase{seen: after(30, 20, 110)}, phase{seen: after(-5, 7, 6)})
	if r.RunningLagP50Millis != 20 || r.RunningLagP99Millis != 100 || r.GoneLagP50Millis != 6 || r.GoneLagP99Millis != 7 || r.StartLagP50Millis != 30 {
		t.Errorf("got %+v", r)
	}
}

// TestNomadIsReadByItsEvents: the time of an event is the time when it was first received. The metadata of a job
// name its pod.
func TestNomadIsReadByItsEvents(t *testing.T) {
	n := &nomad{jobs: map[string]string{}, pods: map[string]lived{}}
	at := time.Unix(1700000000, 0)
	for i, text := range []string{
		`{"Events":[{"Payload":{"Job":{"ID":"a","Meta":{"vk_name":"pod-0"}}}},{"Payload":{"Evaluation":{}}}]}`,
		`{"Events":[{"Payload":{"Allocation":{"JobID":"a","TaskStates":{"app":{"Events":[{"Type":"Received","Time":6},{"Type":"Started","Time":7}]}}}}}]}`,
		`{"Events":[{"Payload":{"Allocation":{"JobID":"a","TaskStates":{"app":{"Events":[{"Type":"Started","Time":7},{"Type":"Terminated","Time":9},{"Type":"Killed","Time":11}]}}}}}]}`,
		`{"Events":[{"Payload":{"Allocation":{"JobID":"a","TaskStates":{"app":{"Events":[{"Type":"Started","Time":8},{"Type":"Terminated","Time":9}]}}}}}]}`,
	} {
		var some nomadEvents
		if err := json.Unmarshal([]byte(text), &some); err != nil {
			t.Fatal(err)
		}
		n.recordEvents(some, at.Add(time.Duration(i)*time.Second))
	}
	all, err := n.podLives(t.Context(), "any")
	want := lived{started: time.Unix(0, 7), began: at.Add(time.Second), ended: at.Add(2 * time.Second)}
	if err != nil || len(all) != 1 || all["pod-0"] != want {
		t.Errorf("got %v, %v; want %v", all, err, want)
	}
}

// TestSlurmIsReadByFiles: the figures come from the files that the programs of pods write, and from the recorded
// calls of commands.
func TestSlurmIsReadByFiles(t *testing.T) {
	c := &slurm{dir: t.TempDir()}
	for name, text := range map[string]string{"calls": "100.5 sbatch\n101.5 squeue\n102.5 squeue\n", "pod-0.began": "7.5", "pod-0.ended": "9", "pod-1.began": ""} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.countRequests(time.Unix(101, 0), time.Unix(102, 0))
	if err != nil || got.countAll() != 1 || got["squeue"] != 1 {
		t.Errorf("got %v, %v; want one squeue", got, err)
	}
	if err := os.Rename(filepath.Join(c.dir, "calls"), filepath.Join(t.TempDir(), "calls")); err != nil {
		t.Fatal(err)
	}
	all, err := readTold(c.dir)
	want := lived{began: time.Unix(7, 500_000_000), ended: time.Unix(9, 0)}
	if err != nil || len(all) != 1 || all["pod-0"] != want {
		t.Errorf("got %v, %v; want %v of pod-0 alone", all, err, want)
	}
}

// TestGoalsAtSchedulers: the scenario of each scheduler has its own agents, lines and goals, and does not belong
// to "all".
func TestGoalsAtSchedulers(t *testing.T) {
	some := func(lag, cpu float64, asked requests) []*round {
		return []*round{{
			AgentCPUMillis: cpu, RunningP50Millis: 2 * lag, Rest: &resting{Seconds: 30},
			Remote: &remote{RunningLagP50Millis: lag, StartLagP50Millis: lag + 1000, Requests: asked, Pods: 200, Rest: requests{"GET /all": 1}},
		}}
	}
	for name, c := range map[string]struct {
		rounds map[string][]*round
		want   []string
	}{
		"nomad": {map[string][]*round{"nomad": some(1001, 5, requests{"PUT /v1/jobs": 800})}, []string{
			"200 pods on one node, at Nomad", "beyond Nomad: to Running, median", "requests to Nomad per pod life",
			"missed   to Running beyond Nomad, median of pods: 1001 ms, goal 1000 ms", "reached  requests to Nomad per pod life: 4.00, goal 4.00",
			"reached  requests to Nomad at rest, a minute: 2.0, goal 2.0", "missed   to Running from the start of the task, median of pods: 2001 ms, goal 1000 ms",
		}},
		"slurm": {map[string][]*round{"slurm": some(2001, 5, requests{"sbatch": 801})}, []string{
			"reached  to Running beyond Slurm, median of pods: 2001 ms, goal 3000 ms", "missed   to Running from the start of the job, median of pods: 3001 ms, goal 3000 ms",
			"missed   commands of Slurm per pod life: 4.00, goal 4.00", "to Running from the start of the job, median",
		}},
		"interlink": {map[string][]*round{"interlink": some(100, 6, requests{}), "interlink-vk": some(200, 10, requests{"GET /status": 1})}, []string{
			"reached  to Running beyond interLink's server, median of pods: 0.50 x interlink-vk, goal 0.50 x",
			"missed   CPU per pod life, with interLink: 0.60 x interlink-vk, goal 0.50 x", "reached  create to Running, median of pods: 0.50 x interlink-vk",
		}},
	} {
		s, err := chooseScenarios(name)
		if err != nil {
			t.Fatal(err)
		}
		suited := slices.DeleteFunc(slices.Clone(agentNames), func(agent string) bool { return !s[0].suitsAgent(agent) })
		if len(suited) != len(c.rounds) {
			t.Errorf("%s: the agents are %v", name, suited)
		}
		var out bytes.Buffer
		r := &report{Every: 500 * time.Millisecond, Agents: agentNames, Settings: map[string]string{}, Scenarios: []outcome{{scenario: s[0], Rounds: c.rounds}}}
		if err := r.printTable(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range append(c.want, "a pod each 500ms") {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is missing in:\n%s", name, want, out.String())
			}
		}
	}
	all, err := chooseScenarios("all")
	if err != nil || slices.ContainsFunc(all, func(s scenario) bool { return s.Backend != "" }) {
		t.Errorf("all scenarios are %v (%v), want those that need no program of others", all, err)
	}
}

// TestProgramsThatAreMissing: the error names the missing program and the command that builds it.
func TestProgramsThatAreMissing(t *testing.T) {
	nothing := config{bin: t.TempDir()}
	for name, want := range map[string]string{"nomad": "make bin/nomad/nomad", "interlink": "make bin/interlink/version"} {
		if _, err := newAgent(t.Context(), nothing, name); !errors.Is(err, os.ErrNotExist) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want that %s builds it", name, err, want)
		}
	}
}
