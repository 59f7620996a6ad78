// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestGoalsAreHeldAgainstTheMedian(t *testing.T) {
	r := &report{Rounds: []round{{RunningLagSeconds: 9}, {RunningLagSeconds: 1}, {RunningLagSeconds: 2}}}
	if missed := r.missed(); len(missed) != 0 {
		t.Errorf("a median at the goal misses it: %v", missed)
	}
	r.Rounds[1].RunningLagSeconds, r.Rounds[2].GoneLagSeconds = 2.5, 4
	missed := r.missed()
	if len(missed) != 1 || !strings.Contains(missed[0], "last create: 2.50 s") {
		t.Errorf("got %q, want the lag after the last create only", missed)
	}
}

func TestTableNamesEverything(t *testing.T) {
	r := &report{
		Agent: "agent", Pods: 10, Rounds: []round{{RunningLagSeconds: 0.25, GoneLagSeconds: 7}}, Defaults: &round{RunningLagSeconds: 42},
		Counted: &counted{Requests: requests{"patch pods/status": 20, "update leases": 1}, IdleSeconds: 30},
	}
	var out bytes.Buffer
	if err := r.printTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.25 s", "2 s: met", "3 s: missed", "42.00 s", "patch pods/status", "2.00", "idle for 30 s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestJSONIsReadable(t *testing.T) {
	var out bytes.Buffer
	if err := (&report{Rounds: []round{{GoneLagSeconds: 1.5}}}).printJSON(&out); err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Rounds[0].GoneLagSeconds != 1.5 {
		t.Errorf("got %+v, %v", back, err)
	}
}
