// SPDX-License-Identifier: Apache-2.0

//go:build linux

package eci

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// TestProcesses runs a pod whose containers are processes of this machine, made by the provider process behind
// the emulator. It checks the log, the exit code, and commands through a real shell.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sh", "cat", "stty", "sleep"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("this machine has no %s", name)
		}
	}
	dir, err := os.MkdirTemp("", "eci") //nolint:usetesting // its sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	runner, err := process.New(ctx, cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "emulator"}}, Recorder: &record.FakeRecorder{}},
		NodeName:       "emulator", InternalIP: "127.0.0.1",
	}, process.Config{StateDir: dir, Isolation: process.IsolationNone})
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	objects := &emulator.Objects{}
	h.region.Fleet = emulator.NewFleet(runner, objects, lag)
	runner.UsePodObjects(objects)
	runner.NotifyPods(ctx, h.region.Report)
	ended := make(chan error, 1)
	go func() { ended <- runner.RunInBackground(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	pod.Spec.ServiceAccountName, pod.Spec.RestartPolicy, pod.Spec.TerminationGracePeriodSeconds = "", corev1.RestartPolicyNever, new(int64(1))
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Args = "none", nil
	pod.Spec.Containers[0].Command = []string{"sh", "-c", "echo begun; sleep 1000 & trap 'kill $!; exit 7' TERM; wait"}
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	h.Until("its log", func() (bool, string) { log := h.Log(p, pod); return log == "begun\n", log })

	every := make([]byte, 70<<10)
	for i := range every {
		every[i] = byte(i)
	}
	for _, plain := range []bool{false, true} {
		h.region.Plain.Store(plain)
		commands(t, p, string(every))
	}
	h.Delete(p, pod)
	h.UntilGone(p, pod)
	all := h.ReportsOf(pod.UID)
	last := all[len(all)-1].Status.ContainerStatuses[0].State.Terminated
	if last == nil || last.ExitCode != 7 {
		t.Errorf("the last report says that it ended with %+v, want 7", last)
	}
}

// commands runs some commands in the pod.
func commands(t *testing.T, p nodeutil.Provider, every string) {
	t.Helper()
	for name, c := range map[string]struct {
		who     *caller
		command []string
		out     string
		code    int
	}{
		"the other output": {&caller{}, []string{"sh", "-c", "echo to err >&2"}, "to err\n", 0},
		"a code":           {&caller{}, []string{"sh", "-c", "exit 3"}, "", 3},
		"an input":         {&caller{in: strings.NewReader(every)}, []string{"cat"}, every, 0},
		"a part of it":     {&caller{in: strings.NewReader(every)}, []string{"head", "-c", "3"}, "\x00\x01\x02", 0},
		"no program":       {&caller{}, []string{"/nowhere/program"}, "-", 127},
		"many words":       {&caller{}, append([]string{"echo"}, strings.Split(strings.Repeat("a ", 29)+"a", " ")...), strings.Repeat("a ", 29) + "a\n", 0},
		"quoted as it is":  {&caller{}, []string{"printf", "%s", "it's $HOME\n\n"}, "it's $HOME\n\n", 0},
	} {
		err := p.RunInContainer(t.Context(), "default", "web", "main", c.command, c.who)
		var exit utilexec.ExitError
		code := 0
		if errors.As(err, &exit) {
			code = exit.ExitStatus()
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.who.out.String(); code != c.code || got != c.out && c.out != "-" {
			t.Errorf("%s: got %d with %d bytes %.40q, want %d with %.40q", name, code, len(got), got, c.code, c.out)
		}
	}
}
