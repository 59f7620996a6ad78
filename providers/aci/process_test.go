// SPDX-License-Identifier: Apache-2.0

//go:build linux

package aci

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// TestProcesses runs a pod whose containers are processes of this machine, made by the provider process behind
// the emulator. It checks the log, the exit code, commands through a real shell on a real terminal, a
// connection, and the usage.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"/bin/sh", "cat", "stty", "sleep"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("this machine has no %s", name)
		}
	}
	dir, err := os.MkdirTemp("", "aci") //nolint:usetesting // its sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	runs, err := process.New(ctx, cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "emulator"}}, Recorder: &record.FakeRecorder{}},
		NodeName:       "emulator", InternalIP: "127.0.0.1",
	}, process.Config{StateDir: dir, Isolation: process.IsolationNone})
	if err != nil {
		t.Fatal(err)
	}
	a, objects := &azure{}, &emulator.Objects{}
	runs.UsePodObjects(objects)
	if err := a.start(ctx, dir, runs, objects, 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- runs.RunInBackground(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	p := a.provider(t, nil).run(t)
	pod := programPod("u-1", stays)
	pod.Spec.Containers[0].Image = "none"
	pod.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "echo begun; sleep 1000 & trap 'kill $!; exit 7' TERM; wait"}
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to run", func() bool { return p.phase(pod) == corev1.PodRunning })
	until(t, "its log", func() bool {
		log, err := p.GetContainerLogs(t.Context(), "ns", pod.Name, "main", api.ContainerLogOpts{})
		if err != nil {
			return false
		}
		defer log.Close()
		text, _ := io.ReadAll(log)
		return string(text) == "begun\n"
	})

	every := make([]byte, 30<<10)
	for i := range every {
		every[i] = byte(i)
	}
	for name, c := range map[string]struct {
		in      io.Reader
		command []string
		out     string
		code    int
	}{
		"an output":       {nil, []string{"sh", "-c", "echo to err >&2; echo a"}, "to err\na\n", 0},
		"a code":          {nil, []string{"sh", "-c", "exit 3"}, "", 3},
		"an input":        {strings.NewReader(string(every)), []string{"cat"}, string(every), 0},
		"a part of it":    {strings.NewReader(string(every)), []string{"head", "-c", "3"}, "\x00\x01\x02", 0},
		"no program":      {nil, []string{"/nowhere/program"}, "-", 127},
		"many words":      {nil, append([]string{"echo"}, strings.Split(strings.Repeat("a ", 299)+"a", " ")...), strings.Repeat("a ", 299) + "a\n", 0},
		"quoted as it is": {nil, []string{"printf", "%s", "it's $HOME\t!!\n\n"}, "it's $HOME\t!!\n\n", 0},
	} {
		who := &terminal{in: c.in}
		err := p.RunInContainer(t.Context(), "ns", pod.Name, "main", c.command, who)
		var exit utilexec.ExitError
		code := 0
		if errors.As(err, &exit) {
			code = exit.ExitStatus()
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := who.text(); code != c.code || got != c.out && c.out != "-" {
			t.Errorf("%s: got %d with %d bytes %.60q, want %d with %.60q", name, code, len(got), got, c.code, c.out)
		}
	}
	who := &terminal{in: strings.NewReader("echo t; stty size; exit 4\n"), sizes: make(chan api.TermSize, 1)}
	who.sizes <- api.TermSize{Height: 31, Width: 99}
	var exit utilexec.ExitError
	if err := p.RunInContainer(t.Context(), "ns", pod.Name, "main", []string{"sh"}, who); !errors.As(err, &exit) || exit.ExitStatus() != 4 || !strings.Contains(who.text(), "31 99") {
		t.Errorf("a terminal: %v with %q", err, who.text())
	}

	if stats, err := p.GetStatsSummary(t.Context()); err != nil || len(stats.Pods) != 1 || len(stats.Pods[0].Containers) != 1 {
		t.Errorf("stats: %+v, %v", stats, err)
	}
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to be gone", func() bool { return p.phase(pod) == "" })
}
