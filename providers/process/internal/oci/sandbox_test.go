// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"path/filepath"
	"reflect"
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
		{r.Keep("/d", "c1", "/b", true), "run --bundle /b --pid-file /d/pid --console-socket /d/s c1"},
		{r.Attend("/d", "c1"), "exec --process /d/process.json --internal-pid-file /d/guest c1"},
		{r.Signal("/d", "c1", 15), "kill c1 15"},
		{r.Processes("/d", "c1"), "ps c1"},
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

func TestAContainerRunsWhenItsStateSaysSo(t *testing.T) {
	r := Runtime{Root: t.TempDir()}
	if r.Runs("c1", "s1") {
		t.Error("it runs, and there is none")
	}
	// Text that a pod can put into its environment does not count as a state.
	for state, want := range map[string]bool{
		"": false, `{"status":"run`: false, `{"id":"c1","spec":{"status":"running"},"status":"created"}`: false, `{"id":"c1","status":"running"}`: true,
	} {
		if err := os.WriteFile(filepath.Join(r.Root, "c1_sandbox:s1.state"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := r.Runs("c1", "s1"); got != want {
			t.Errorf("%s: runs %v, want %v", state, got, want)
		}
	}
	if r.Runs("c1", "s2") {
		t.Error("it runs in another sandbox")
	}
}

func TestASandboxIsForgottenAndNoOther(t *testing.T) {
	r := Runtime{Root: t.TempDir()}
	for _, name := range []string{"runsc-s1.sock", "s1_sandbox:s1.lock", "s1_sandbox:s1.state", "runsc-s2.sock", "c1_sandbox:s1.state"} {
		if err := os.WriteFile(filepath.Join(r.Root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a missing file is no error
		if err := r.Forget("s1", "s1"); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(r.Root)
	if err != nil || len(left) != 2 || left[0].Name() != "c1_sandbox:s1.state" || left[1].Name() != "runsc-s2.sock" {
		t.Errorf("got %v, %v", left, err)
	}
	if err := r.Forget("c1", "s1"); err != nil {
		t.Fatal(err)
	}
	left, err = os.ReadDir(r.Root)
	if err != nil || len(left) != 1 || left[0].Name() != "runsc-s2.sock" {
		t.Errorf("without its container: got %v, %v", left, err)
	}
}

func TestProcessesOfASandbox(t *testing.T) {
	got := ReadProcesses([]byte("UID       PID       PPID      C         TTY       STIME     TIME      CMD\n" +
		"0         1         0         0         ?         05:00     0s        sleep\n" +
		"0         7         0         0         pts/0     05:01     0s        sh\n" +
		"1000      8         7         0         pts/0     05:01     0s        a b\n\n"))
	if want := map[int][]int{0: {1, 7}, 7: {8}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
