// SPDX-License-Identifier: Apache-2.0

// Package contract checks the contract of providers over the plugin protocol.
package contract

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/plugin"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the provider contract.
//
// FILL(contract): start the plugin with your service, or with an emulator. If its images have a shell, use providertest.Shell for Container and
// Command of the harness.
func TestContract(t *testing.T) {
	p := start(t)
	providertest.Run(t, providertest.Harness{
		Backend: func(context.Context, providertest.Env) (*providertest.Backend, error) { return p.backend(), nil },
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Command = "contract", p.Args()
			return nil
		},
		Command:        func(p program.Program) ([]string, error) { return p.Args(), nil },
		OwnStartErrors: true, // the service in memory reports no reasons
		Patience:       20 * time.Second, Tick: 200 * time.Millisecond, Many: 8,
	})
}

// process is the plugin, with control of its service in memory.
type process struct {
	socket string

	mu      sync.Mutex
	asks    io.Writer      // guarded by mu
	answers *bufio.Scanner // guarded by mu
}

// start starts the plugin. It ends with the test.
func start(t *testing.T) *process {
	t.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "/usr/bin/python3" // Debian's python3-grpcio is for this interpreter
	}
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import grpc, google.protobuf").CombinedOutput(); err != nil {
		t.Skipf("%s has no grpc and protobuf (%v: %s): apt-get install python3-grpcio, or name another one in PYTHON", python, err, out)
	}
	dir, err := os.MkdirTemp("", "vk") //nolint:usetesting // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &process{socket: filepath.Join(dir, "s")}
	cmd := exec.CommandContext(t.Context(), python, "contract.py", "--socket", p.socket, "--poll", "0.02")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // it was killed
	p.asks, p.answers = in, bufio.NewScanner(out)
	if !p.answers.Scan() {
		t.Fatalf("%s contract.py does not listen", python)
	}
	return p
}

// ask requests a fault or a fact from the service in memory.
func (p *process) ask(what map[string]any) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(what)
	if err == nil {
		_, err = fmt.Fprintf(p.asks, "%s\n", line)
	}
	if err != nil {
		return 0, fmt.Errorf("ask the plugin: %w", err)
	}
	var said struct {
		N     int
		Error string
	}
	if !p.answers.Scan() {
		return 0, errors.New("ask the plugin: it does not answer")
	}
	if err := json.Unmarshal(p.answers.Bytes(), &said); err != nil {
		return 0, fmt.Errorf("ask the plugin: %w", err)
	}
	if said.Error != "" {
		return 0, errors.New(said.Error)
	}
	return said.N, nil
}

// backend is the service for the contract, with its faults.
func (p *process) backend() *providertest.Backend {
	fault := func(text string) func(bool) {
		return func(on bool) {
			ask := map[string]any{"do": "fault", "text": ""}
			if on {
				ask["text"] = text
			}
			_, _ = p.ask(ask) // the check sees the effect
		}
	}
	return &providertest.Backend{
		Open: func(ctx context.Context) (node.PodLifecycleHandler, error) {
			n := &corev1.Node{}
			n.Name = "contract"
			return plugin.New(ctx, plugin.Node{Node: n}, plugin.Config{Endpoint: "unix://" + p.socket})
		},
		Instances: func(pod *corev1.Pod) (int, error) { return p.ask(map[string]any{"do": "instances", "uid": pod.UID}) },
		Kill: func(pod *corev1.Pod, container string) error {
			_, err := p.ask(map[string]any{"do": "kill", "uid": pod.UID, "container": container})
			return err
		},
		Lose: func(pod *corev1.Pod) error {
			_, err := p.ask(map[string]any{"do": "lose", "uid": pod.UID})
			return err
		},
		Outage: fault("no connection"), Throttle: fault("429 Too Many Requests"),
		LoseAnswer: func() { _, _ = p.ask(map[string]any{"do": "lose-answer"}) },
	}
}
