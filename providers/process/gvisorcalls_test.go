// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestGVisorIsCalledSeldom limits the number of processes that a container costs: runtime commands, and file
// servers. Starting, stopping and removing a container takes two commands, and its sandbox one. Only the
// container has a file server.
func TestGVisorIsCalledSeldom(t *testing.T) {
	onGVisor(t)
	calls := callsOfGVisor(t)
	w := open(t, nil)
	id := w.run("hello", nil, "demo")
	w.until("a line", func() bool { return strings.Contains(w.log("hello"), "hello 1") })
	if got := len(servers(t, id, w.sandbox)); got != 1 {
		t.Errorf("%d processes open files, want 1", got)
	}
	if err := w.StopContainer(t.Context(), id, 60); err != nil {
		t.Fatal(err)
	}
	if s := w.ended(id); s.GetExitCode() != 0 {
		t.Errorf("it ended with %d: %s", s.GetExitCode(), s.GetMessage())
	}
	if err := w.RemovePodSandbox(t.Context(), w.sandbox); err != nil {
		t.Fatal(err)
	}
	if left, err := w.ListContainers(t.Context(), &runtimeapi.ContainerFilter{}); err != nil || len(left) != 0 {
		t.Errorf("there is left: %v, %v", left, err)
	}
	// Earlier calls are the attempts that the daemon makes at its start.
	got := calls()
	if n := len(got); n < 3 || !slices.Equal(got[n-3:], []string{"run --detach", "run --bundle", "kill " + id[:32]}) {
		t.Errorf("the calls: %q", got)
	}
}

// callsOfGVisor returns a function that returns all runtime commands so far that create or end something, each
// with its next argument.
func callsOfGVisor(t *testing.T) func() []string {
	t.Helper()
	dir := t.TempDir()
	program, calls := filepath.Join(dir, "runsc"), filepath.Join(dir, "calls")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >> %s\nexec %s \"$@\"\n", calls, needGVisor(t))
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv(runtimeEnv, program)
	return func() (got []string) {
		said, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(said)) {
			words := strings.Fields(line)
			if at := slices.IndexFunc(words, func(word string) bool {
				return slices.Contains([]string{"run", "kill", "wait", "delete", "state"}, word)
			}); at >= 0 {
				got = append(got, strings.Join(words[at:min(at+2, len(words))], " "))
			}
		}
		return got
	}
}

// TestGVisorThatDoesNotAnswerHidesNoOtherContainer checks that statistics still have the other containers.
// Evictions depend on these statistics.
func TestGVisorThatDoesNotAnswerHidesNoOtherContainer(t *testing.T) {
	onGVisor(t)
	dir := t.TempDir()
	program, hung := filepath.Join(dir, "runsc"), filepath.Join(dir, "hung")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *events*) [ -e %[1]s ] && case \"$*\" in *$(cat %[1]s)*) exec sleep 600;; esac;; esac\nexec %[2]s \"$@\"\n", hung, needGVisor(t))
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv(runtimeEnv, program)
	w := open(t, nil)
	silent, well := w.run("silent", nil, "sleep", "600"), w.run("well", nil, "sleep", "600")
	if err := os.WriteFile(hung, []byte(silent[:32]), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := w.ListContainerStats(t.Context(), nil)
	if err != nil || len(list) != 2 {
		t.Fatalf("got %v, %v, want both containers", list, err)
	}
	for _, s := range list {
		if id := s.GetAttributes().GetId(); s.GetWritableLayer() == nil || (s.GetMemory() != nil) != (id == well) {
			t.Errorf("container %s (the silent one is %s): got %v", id, silent, s)
		}
	}
}

// servers returns the processes that open files for these containers or sandboxes.
func servers(t *testing.T, ids ...string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(line), "runsc-gofer\x00") && slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(string(line), id[:16]) }) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
