// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// daemonEnv is the environment variable that makes this test binary run as a daemon. Its value is the directory
// for state and logs.
const daemonEnv = "PROCESS_DAEMON"

// made is the daemon's message after it has started its containers.
type made struct {
	Sandbox                string
	Running, Ended, Killed string
}

// daemon starts containers, reports them, and runs until it is killed.
func daemon(dir string) {
	err := func() error {
		ctx := context.Background()
		r, err := process.Open(ctx, daemonConfig(dir), "n1", "192.0.2.1")
		if err != nil {
			return err
		}
		var m made
		m.Sandbox, err = r.RunPodSandbox(ctx, &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "u1"}, Hostname: "pod-1", LogDirectory: filepath.Join(dir, "logs"),
		}, "")
		for name, id := range map[string]*string{"running": &m.Running, "ended": &m.Ended, "killed": &m.Killed} {
			if err == nil {
				*id, err = r.CreateContainer(ctx, m.Sandbox, &runtimeapi.ContainerConfig{
					Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "demo"}, LogPath: name + ".log",
				}, nil)
			}
			if err == nil {
				err = r.StartContainer(ctx, *id)
			}
		}
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(m); err != nil {
			return err
		}
		return r.Run(ctx)
	}()
	fmt.Println(err)
	os.Exit(1)
}

func daemonConfig(dir string) process.Config {
	return testConfig(filepath.Join(dir, "state"), os.Getenv("PROCESS_IMAGES"))
}

// TestDaemonKilled kills a daemon in a separate process, and checks the state that the next daemon finds.
func TestDaemonKilled(t *testing.T) {
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	dir := t.TempDir()
	w := &world{t: t, config: testConfig(filepath.Join(dir, "state"), images), logs: filepath.Join(dir, "logs")}
	m := killDaemon(t, dir, images)
	states := map[string]shim.State{}
	for _, id := range []string{m.Running, m.Ended, m.Killed} {
		states[id] = w.state(id)
	}
	for _, name := range []string{"running", "ended"} { // earlier, a signal could reach a program that does not wait for signals yet
		w.until("the first line of container "+name, func() bool { return strings.Contains(w.log(name), "hello 1") })
	}
	lines := strings.Count(w.log("running"), "\n")
	// No daemon runs now: only the supervisors see the following changes.
	for id, signal := range map[string]syscall.Signal{m.Ended: syscall.SIGTERM, m.Killed: syscall.SIGKILL} {
		if err := shim.Signal(t.Context(), w.container(id), signal); err != nil {
			t.Fatal(err)
		}
		w.until("the end of a container", func() bool { return w.state(id).Ended() })
	}
	w.reopen()
	w.sandbox = m.Sandbox
	t.Cleanup(w.close)

	list, err := w.ListContainers(t.Context(), nil)
	if err != nil || len(list) != 3 {
		t.Fatalf("containers: got %v, %v", list, err)
	}
	if s := w.status(m.Ended); s.GetExitCode() != 0 || s.GetReason() != "Completed" || !strings.Contains(w.log("ended"), "goodbye: terminated") {
		t.Errorf("what ended itself: got %v", s)
	}
	if s := w.status(m.Killed); s.GetExitCode() != 137 || s.GetReason() != "Error" {
		t.Errorf("what was killed: got %v", s)
	}
	if s := w.status(m.Running); s.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("what runs: got %v", s)
	}
	if s := w.state(m.Running); s.Init != states[m.Running].Init || s.Shim != states[m.Running].Shim || !s.Init.Alive() {
		t.Errorf("what runs has other processes: got %+v, want %+v", s, states[m.Running])
	}
	w.until("its log to go on", func() bool { return strings.Count(w.log("running"), "\n") > lines })
	if err := w.StartContainer(t.Context(), m.Running); err == nil {
		t.Error("a container that runs can be started again")
	}
}

// killDaemon starts a daemon, and kills it once it has its containers.
func killDaemon(t *testing.T, dir, images string) made {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonEnv+"="+dir, "PROCESS_IMAGES="+images)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var m made
	if err == nil {
		err = json.Unmarshal([]byte(line), &m)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if err != nil {
		t.Fatalf("the daemon said %q: %v", line, err)
	}
	return m
}

func (w *world) container(id string) string {
	return filepath.Join(w.config.StateDir, "containers", id)
}

func (w *world) state(id string) shim.State {
	w.t.Helper()
	s, err := shim.ReadState(w.container(id))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}
