// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCallsOfASandbox(t *testing.T) {
	r := Runtime{Program: "/runsc", Root: "/run/x", Flags: []string{"--network=none"}}
	for _, tt := range []struct {
		call Call
		want string
	}{
		{r.Run("/d", "c1", "/b", false), "run --detach --bundle /b --pid-file /d/pid c1"},
		{r.Wait("/d", "c1"), "wait c1"},
		{r.Attend("/d", "c1"), "exec --process /d/process.json --internal-pid-file /d/guest c1"},
		{r.Signal("/d", "c1", 15), "kill c1 15"},
		{r.SignalGroup("/d", "c1", 7, 1), "kill --pgid 7 c1 1"},
		{r.SignalProcess("/d", "c1", 7, 1), "kill --pid 7 c1 1"},
		{r.Forward("/d", "c1", "/d/s", 80), "port-forward --stream /d/s c1 80"},
		{r.Stats("/d", "c1"), "events --stats c1"},
	} {
		want := "/runsc --root /run/x --log /d/log --log-format json --network=none " + tt.want
		if got := strings.Join(tt.call.Argv, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestWhatASandboxSays(t *testing.T) {
	for said, want := range map[string]int{`{"id":"c","exitStatus":7}`: 7, `{"id":"c","exitStatus":0}` + "\n": 0, "": -1, "{}": -1} {
		if got, err := ExitCode([]byte(said)); (err == nil) != (want >= 0) || err == nil && got != want {
			t.Errorf("%q: got %d, %v, want %d", said, got, err, want)
		}
	}
	cpu, memory, err := ReadStats([]byte(`{"type":"stats","data":{"cpu":{"usage":{"total":5}},"memory":{"usage":{"usage":6}}}}`))
	if err != nil || cpu != 5 || memory != 6 {
		t.Errorf("got %d, %d, %v", cpu, memory, err)
	}
	if _, _, err := ReadStats([]byte("{}")); err == nil {
		t.Error("no statistics: got no error")
	}
}

func TestAContainerOfASandboxIsKnownByItsState(t *testing.T) {
	r := Runtime{Root: t.TempDir()}
	if r.Knows("c1") {
		t.Error("it knows what is not there")
	}
	if err := os.WriteFile(filepath.Join(r.Root, "c1_sandbox:s1.state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !r.Knows("c1") || r.Knows("c") || r.Knows("s1") {
		t.Error("it takes one container for another")
	}
}
