// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestGoalsAtSimulatedMachines: figures that miss each goal of 200 machines miss all of them. 20 machines have the same goal of requests at rest, and no goal
// of memory. None of their pods ends by itself.
func TestGoalsAtSimulatedMachines(t *testing.T) {
	r := &round{AgentAddedMiB: 61, Rest: &resting{Seconds: 60}, Remote: &remote{
		Pods: 10, Requests: requests{"RunInstances": 41}, Rest: requests{"DescribeInstances": 16, refusedFor + "DescribeInstances": 1},
		RunningLagP50Millis: 501, ExitLagP50Millis: 501, Left: map[string]int{"instances": 1},
	}}
	for name, want := range map[string]int{"cells": 7, "cells-20": 4} {
		chosen, err := chooseScenarios(name)
		if err != nil || !chosen[0].isCloud() || chosen[0].hasEnds() != (name == "cells") {
			t.Fatalf("got %+v, %v", chosen, err)
		}
		missed, atRest := 0, false
		for _, g := range cellGoals() {
			if text, reached, ok := g.judgeRounds(name, map[string][]*round{"kip": {r}}); ok && !reached {
				missed++
				atRest = atRest || text == "requests to EC2 at rest, a minute: 17.0, goal 15.0"
			}
		}
		if missed != want || !atRest {
			t.Errorf("%s: %d goals are missed by figures that miss all %d; at rest: %t", name, missed, want, atRest)
		}
		var out bytes.Buffer
		o := outcome{scenario: chosen[0], Rounds: map[string][]*round{"kip": {r}}}
		if err := o.printTable(&out, agentNames); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "each on a simulated machine of the emulator of EC2") || !strings.Contains(out.String(), "machines add") || strings.Contains(out.String(), "not seen within") != (name == "cells") {
			t.Errorf("%s: the table is\n%s", name, out.String())
		}
	}
	if _, err := parseFlags([]string{"-scenarios=cells-20"}); err != nil {
		t.Error(err)
	}
}

// TestGoalsOnMachinesOfQEMU: a start on standby has its own goal beside the start of a new machine. The table has both.
func TestGoalsOnMachinesOfQEMU(t *testing.T) {
	chosen, err := chooseScenarios("cells-qemu")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &report{Agents: agentNames, Settings: map[string]string{}, Scenarios: []outcome{{scenario: chosen[0], Starts: map[string][]*starts{
		"kip-cold": {{OneByOneMillis: []float64{19000, 25000, 18000}}}, "kip-standby": {{OneByOneMillis: []float64{1600, 1000, 1700}, GoneP50Millis: 77}},
	}}}}
	if err := r.printTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"10 pods on one node, one after another, each on a machine of QEMU", "kip-cold", "25000 ms", "77 ms",
		"missed   with a machine on standby: to Running, median: 1600 ms, goal 1500 ms", "reached  with a new machine: to Running, median: 19000 ms, goal 20000 ms",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

// TestTurnOfAPod: a pod waits until the machine of the last pod is gone, and until a machine on standby has its certificate.
func TestTurnOfAPod(t *testing.T) {
	const waits, signed = `{"Machine":{"Tags":{"vk-standby":"true"}}}`, `{"Machine":{"Tags":{"vk-standby":"true","vk-signed":"k"}}}`
	const taken = `{"Machine":{"Tags":{"vk-standby":"false","vk-signed":"k"}}}`
	for _, c := range []struct {
		records       []string
		cold, standby bool
	}{
		{nil, true, false}, {[]string{taken}, false, false}, {[]string{waits}, false, false}, {[]string{signed}, false, true}, {[]string{signed, taken}, false, false}, {[]string{"{"}, false, false},
	} {
		dir := t.TempDir()
		for i, text := range c.records {
			file := filepath.Join(dir, "machines", podName(i), "machine.json")
			if err := writeConfig(file, text); err != nil {
				t.Fatal(err)
			}
		}
		if got := (&qemuMachines{dir: dir}).isTurn(); got != c.cold {
			t.Errorf("%v: the turn of a new machine is %t", c.records, got)
		}
		if got := (&qemuMachines{dir: dir, standby: true}).isTurn(); got != c.standby {
			t.Errorf("%v: the turn of a machine on standby is %t", c.records, got)
		}
	}
}

// TestRemainingMachinesAreKilled: a machine is killed. A process that only has the number of a former machine is not.
func TestRemainingMachinesAreKilled(t *testing.T) {
	dir := t.TempDir()
	start := func(machine, arg string) (*exec.Cmd, io.Closer) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "read line", arg)
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close() })
		if err := writeConfig(filepath.Join(dir, "machines", machine, "pid"), fmt.Sprintln(cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
		return cmd, in
	}
	one, _ := start("one", filepath.Join(dir, "machines", "one", "console.log"))
	other, in := start("other", "another program")
	killMachines(dir)
	if err := one.Wait(); one.ProcessState == nil || one.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the machine ended with %v", err)
	}
	_ = in.Close()
	if err := other.Wait(); !other.ProcessState.Exited() {
		t.Errorf("the other program ended with %v", err)
	}
	killMachines(dir) // the numbers are of no process any more
}

// TestImageOfMachinesIsNeeded: without the image of machines, the error names the command that builds it.
func TestImageOfMachinesIsNeeded(t *testing.T) {
	if _, err := newAgent(t.Context(), config{bin: t.TempDir()}, "kip-cold"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "make cell-image") {
		t.Errorf("got %v", err)
	}
}
