// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestGVisorIsKilledWithItsLastContainer checks the end of a pod: its last container is killed together with the
// sandbox, which saves a call of the runtime. The container has the same status as after a kill of its own, and
// other containers run until then.
func TestGVisorIsKilledWithItsLastContainer(t *testing.T) {
	onGVisor(t)
	calls := callsOfGVisor(t)
	w := open(t, nil)
	deaf := w.run("deaf", nil, "linger")
	last := w.run("last", nil, "sleep", "600")
	w.until("three generations", func() bool { return strings.Contains(w.log("deaf"), "lingering 0") })
	sandbox := w.sandboxProcess(w.sandbox)
	before := len(calls())
	w.EndSandbox(w.sandbox)
	killed := func(id string, grace int64) {
		t.Helper()
		if err := w.StopContainer(t.Context(), id, grace); err != nil {
			t.Fatal(err)
		}
		if s := w.status(id); s.GetExitCode() != 137 || s.GetReason() != "Error" || s.GetMessage() != "" {
			t.Errorf("a container that was killed: got %v", s)
		}
	}
	killed(deaf, 1)
	if !sandbox.Alive() || w.status(last).GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Error("another container does not run any more")
	}
	killed(last, 0)
	w.until("the end of the sandbox", func() bool { return !sandbox.Alive() })
	if err := w.RemovePodSandbox(t.Context(), w.sandbox); err != nil {
		t.Fatal(err)
	}
	if got, want := calls()[before:], []string{"kill " + deaf[:32]}; !slices.Equal(got, want) {
		t.Errorf("the calls: got %q, want %q", got, want)
	}
}

// TestGVisorGoesOnWithoutAContainerThatWasKilled checks that a container is killed alone as long as its pod does
// not end.
func TestGVisorGoesOnWithoutAContainerThatWasKilled(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	if err := w.StopContainer(t.Context(), w.run("main", nil, "sleep", "600"), 0); err != nil {
		t.Fatal(err)
	}
	if !w.sandboxProcess(w.sandbox).Alive() {
		t.Error("the sandbox has ended")
	}
	if s := w.ended(w.run("next", nil, "exit", "3")); s.GetExitCode() != 3 {
		t.Errorf("the next container: got %v", s)
	}
}

// TestGVisorKeepsTheExitCodeWhereItsPodEnds checks that a program that ends on a signal keeps its own exit code,
// even while its pod ends.
func TestGVisorKeepsTheExitCodeWhereItsPodEnds(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	id := w.run("hello", nil, "demo")
	w.until("a line", func() bool { return strings.Contains(w.log("hello"), "hello 1") })
	w.EndSandbox(w.sandbox)
	if err := w.StopContainer(t.Context(), id, 60); err != nil {
		t.Fatal(err)
	}
	if s := w.status(id); s.GetExitCode() != 0 || s.GetMessage() != "" {
		t.Errorf("got %v", s)
	}
	if err := w.StopContainer(t.Context(), id, 0); err != nil {
		t.Error(err)
	}
	if s := w.status(id); s.GetExitCode() != 0 {
		t.Errorf("stopped again: got %v", s)
	}
}
