// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func writeJournal(t *testing.T, text string) *cloud {
	t.Helper()
	c := &cloud{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(c.dir, "journal"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCloudsAreReadByTheirJournals: a journal gives the requests by operation, and the lives of groups by the
// names of their pods. The first time of an event counts, and an unfinished line does not.
func TestCloudsAreReadByTheirJournals(t *testing.T) {
	c := writeJournal(t, `100.000000 request Create 200
100.100000 made g1 pod-0
100.200000 request Create refused
105.000000 began g1
106.000000 began g1
107.000000 request List 200
108.000000 began g2
108.500000 ended g1
109.000000 gone g1
110.000000 request Li`)
	got, err := c.countRequests(time.Unix(100, 0), time.Unix(200, 0))
	if want := (requests{"Create": 1, refusedFor + "Create": 1, "List": 1}); err != nil || !maps.Equal(got, want) {
		t.Errorf("requests %v (%v), want %v", got, err, want)
	}
	if got, err := c.countRequests(time.Unix(101, 0), time.Unix(200, 0)); err != nil || got.countAll() != 1 {
		t.Errorf("requests of a part %v (%v)", got, err)
	}
	if n := (&remote{Requests: got, Rest: requests{refusedFor + "List": 2, "List": 9}}).countRefused(); n != 3 {
		t.Errorf("%d were refused, want 3", n)
	}
	lives, err := c.podLives(t.Context(), "any")
	want := lived{began: time.Unix(105, 0), exited: time.Unix(108, 500_000_000), ended: time.Unix(109, 0)}
	if err != nil || lives["pod-0"] != want {
		t.Errorf("got %v (%v), want %v", lives["pod-0"], err, want)
	}
	if _, err := writeJournal(t, "100.0 began\n").podLives(t.Context(), "any"); err == nil {
		t.Error("a line without a group is none that is understood")
	}
}

// TestEndsAtRest: pods that ended by themselves have a lag of their own, and no lag to gone.
func TestEndsAtRest(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1700000000+int64(s), 0) }
	known := []lived{{began: at(0), exited: at(10), ended: at(10)}, {began: at(0), ended: at(50)}, {began: at(0), exited: at(20), ended: at(20)}}
	r := remote{}
	r.setLags(known, phase{seen: []time.Time{at(1), at(2), at(3)}}, phase{seen: []time.Time{at(60), at(52), at(60)}})
	r.setExits(known, []time.Time{at(11), at(52), at(60)}, at(24)) // the last one when it was deleted
	if r.ExitLagP50Millis != 1000 || r.ExitLagP99Millis != 4000 || r.Unseen != 1 || r.GoneLagP50Millis != 2000 || r.GoneLagP99Millis != 2000 {
		t.Errorf("got %+v", r)
	}
}

// TestCloudsAreScenarios: one name selects the scenarios of all clouds. Each scenario has the same goals, for
// its own agent.
func TestCloudsAreScenarios(t *testing.T) {
	chosen, err := chooseScenarios(clouds)
	if err != nil || len(chosen) != len(cloudServices) {
		t.Fatalf("got %v, %v", chosen, err)
	}
	for _, s := range chosen {
		for _, agent := range agentNames {
			if s.suitsAgent(agent) != (strings.TrimSuffix(agent, pushed) == s.Name) {
				t.Errorf("%s suits %s: %t", s.Name, agent, s.suitsAgent(agent))
			}
		}
		r := &round{AgentPeakMiB: 101, Rest: &resting{Seconds: 60}, Remote: &remote{Pods: 10, Requests: requests{"Create": 42}, Rest: requests{"List": 16 + s.Singles}, RunningLagP50Millis: 3001, ExitLagP50Millis: 3001}}
		r.Remote.Rest[refusedFor+"List"] = 1
		missed := 0
		for _, g := range goals {
			if text, reached, ok := g.judgeRounds(s.Name, map[string][]*round{s.Name: {r}}); ok && strings.Contains(text, "goal") && !reached {
				missed++
			}
		}
		want := 6
		if s.Restarts { // no pod ends
			want--
		}
		if missed != want {
			t.Errorf("%s: %d goals are missed by figures that miss all %d", s.Name, missed, want)
		}
	}
	if all, err := chooseScenarios("all"); err != nil || slices.ContainsFunc(all, scenario.isCloud) {
		t.Errorf("all are %v, %v", all, err)
	}
}

// TestQueueIsUsedWhereItIsWanted: the queue stays in the configuration of an agent with push, and is removed for
// the others. With push, an emulator without a queue is skipped.
func TestQueueIsUsedWhereItIsWanted(t *testing.T) {
	const with, without = "region: r\nqueue: https://q\ncapacity: {}\n", "region: r\ncapacity: {}\n"
	for _, c := range []struct {
		push       bool
		text, want string
	}{{true, with, with}, {false, with, without}, {false, without, without}, {true, without, ""}} {
		file := filepath.Join(t.TempDir(), "provider.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := onCloud{push: c.push, service: "fargate"}.setQueue(file)
		if got, _ := os.ReadFile(file); errors.Is(err, errCannot) != (c.want == "") || c.want != "" && string(got) != c.want {
			t.Errorf("push %t of %q: %q, %v", c.push, c.text, got, err)
		}
	}
}

// TestEmulatorIsToldWhichGroupsEnd: the emulator reads the ended groups from its input.
func TestEmulatorIsToldWhichGroupsEnd(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{commands: in}
	if c.program, err = startedForTest(cmd); err != nil {
		t.Fatal(err)
	}
	if err := c.endContainers("g1"); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if text, err := io.ReadAll(out); err != nil || string(text) != "g1\n" {
		t.Errorf("it was told %q, %v", text, err)
	}
	_ = cmd.Wait()
}

func startedForTest(cmd *exec.Cmd) (*process, error) { return &process{cmd: cmd}, cmd.Start() }
