// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

func TestContainerRunsAndTellsItsExitCode(t *testing.T) {
	w := open(t, nil)
	t.Log("isolation:", w.Isolation())
	for code, want := range map[string]string{"0": "Completed", "7": "Error"} {
		s := w.ended(w.run("exit"+code, nil, "exit", code))
		if s.GetReason() != want || s.GetStartedAt() == 0 || s.GetFinishedAt() < s.GetStartedAt() {
			t.Errorf("exit %s: got %v", code, s)
		}
		if code == "7" && s.GetExitCode() != 7 {
			t.Errorf("exit code: got %d, want 7", s.GetExitCode())
		}
	}
	w.ended(w.run("name", nil, "hostname"))
	if got := w.log("name"); got != "stdout F pod-1" {
		t.Errorf("log: got %q", got)
	}
	_, err := w.tryRun("absent", nil, "absent")
	if err == nil || !strings.Contains(err.Error(), "executable file not found in $PATH") {
		t.Errorf("an absent command: got %v", err)
	}
}

func TestExecSync(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	out, _, err := w.ExecSync(t.Context(), id, []string{"hostname"}, time.Minute)
	if err != nil || string(out) != "pod-1\n" {
		t.Errorf("hostname: got %q, %v", out, err)
	}
	_, _, err = w.ExecSync(t.Context(), id, []string{"exit", "3"}, time.Minute)
	if e, ok := err.(utilexec.ExitError); !ok || e.ExitStatus() != 3 {
		t.Errorf("exit 3: got %v", err)
	}
	if _, _, err = w.ExecSync(t.Context(), id, []string{"sleep", "600"}, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("time-out: got %v", err)
	}
	if w.status(id).GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Error("the container ended with a command in it")
	}
}

func TestCommandThatTimedOutIsKilled(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	if _, _, err := w.ExecSync(t.Context(), id, []string{"sleep", "602"}, 100*time.Millisecond); err == nil {
		t.Fatal("it did not time out")
	}
	for late := time.After(time.Minute); commandRuns("sleep", "602"); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			t.Fatal("the command still runs, a minute after its time")
		}
	}
}

// commandRuns reports whether a process of the machine has exactly these last arguments.
func commandRuns(args ...string) bool {
	want := strings.Join(args, "\x00") + "\x00"
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(line), want) {
			return true
		}
	}
	return false
}

func TestStopLeavesNoProcess(t *testing.T) {
	for _, isolation := range []string{process.IsolationRunc, process.IsolationNone} {
		t.Run(isolation, func(t *testing.T) {
			if isolation == process.IsolationRunc {
				needRunc(t)
			}
			w := open(t, func(c *process.Config) { c.Isolation, c.RuntimePath = isolation, "" })
			command := []string{"linger"}
			if isolation == process.IsolationNone {
				dir, _ := imageDir()
				command = []string{filepath.Join(dir, "demo"), "linger"}
			}
			id := w.run("linger", nil, command...)
			w.until("three generations", func() bool { return strings.Contains(w.log("linger"), "lingering 0") })
			pids := below(w.config.StateDir, id)
			if len(pids) < 3 {
				t.Fatalf("processes of the container: got %v, want 3 at least", pids)
			}
			if err := w.StopContainer(t.Context(), id, 1); err != nil {
				t.Fatal(err)
			}
			if s := w.status(id); s.GetExitCode() != 137 || s.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
				t.Errorf("status: got %v", s)
			}
			for _, pid := range pids {
				if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(data), "linger") {
					t.Errorf("process %d is left: %q", pid, data)
				}
			}
		})
	}
}

// below returns the processes of a container: the descendants of its supervisor.
func below(stateDir, id string) []int {
	state, _ := shim.ReadState(filepath.Join(stateDir, "containers", id))
	return shim.Descendants(state.Shim.PID)
}

func TestSignalEndsTheMainProcess(t *testing.T) {
	w := open(t, nil)
	id := w.run("hello", nil, "demo")
	w.until("a line", func() bool { return strings.Contains(w.log("hello"), "hello 1") })
	if err := w.StopContainer(t.Context(), id, 60); err != nil {
		t.Fatal(err)
	}
	if s := w.status(id); s.GetExitCode() != 0 || !strings.Contains(w.log("hello"), "goodbye: terminated") {
		t.Errorf("exit code %d, log %q", s.GetExitCode(), w.log("hello"))
	}
}

func TestAnotherDaemonFindsEverything(t *testing.T) {
	w := open(t, nil)
	running, ended := w.run("running", nil, "sleep", "600"), w.run("ended", nil, "exit", "5")
	w.ended(ended)
	before := w.status(running)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	list, err := w.ListContainers(t.Context(), nil)
	if err != nil || len(list) != 2 || list[0].GetId() != running || list[1].GetId() != ended {
		t.Fatalf("containers: got %v, %v", list, err)
	}
	if after := w.status(running); after.GetStartedAt() != before.GetStartedAt() || after.GetState() != before.GetState() {
		t.Errorf("running container: got %v, want %v", after, before)
	}
	if s := w.status(ended); s.GetExitCode() != 5 {
		t.Errorf("ended container: got %v", s)
	}
	if out, _, err := w.ExecSync(t.Context(), running, []string{"hostname"}, time.Minute); err != nil || string(out) != "pod-1\n" {
		t.Errorf("exec: got %q, %v", out, err)
	}
}

func TestKilledSupervisorTakesItsContainerAlong(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	dir := filepath.Join(w.config.StateDir, "containers", id)
	state, err := shim.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := shim.KillProcess(state.Shim); err != nil {
		t.Fatal(err)
	}
	if s := w.ended(id); s.GetReason() != "Unknown" || s.GetExitCode() != 255 {
		t.Errorf("status: got %v", s)
	}
	w.until("the end of the process", func() bool { return !state.Init.Alive() })
}

func TestEvents(t *testing.T) {
	w := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	events, connected := make(chan *runtimeapi.ContainerEventResponse), make(chan struct{})
	wg.Go(func() { _ = w.Run(ctx) })
	wg.Go(func() {
		_ = w.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) { close(connected) })
	})
	<-connected
	started := make(chan string, 1)
	wg.Go(func() { started <- w.run("main", nil, "exit", "4") })
	for _, want := range []runtimeapi.ContainerEventType{
		runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT,
	} {
		if e := <-events; e.GetContainerEventType() != want {
			t.Errorf("event: got %v, want %v", e.GetContainerEventType(), want)
		}
	}
	if s := w.status(<-started); s.GetExitCode() != 4 {
		t.Errorf("status at the event: got %v", s)
	}
}
