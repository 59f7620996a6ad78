// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc"
	"github.com/virtual-kubelet/virtual-kubelet/providers/mock"
)

// mockPluginCommand makes this program the provider mock as a plugin.
const mockPluginCommand = "mock-plugin"

// plugged is this project's agent with its provider in a process of its own. The usage of both processes counts.
type plugged struct{ ours }

func (plugged) agentName() string { return "plugin" }

func (plugged) describeSettings() string {
	return "virtual-kubelet --provider=plugin, and the provider mock of ours in a process beside it; CPU and memory are of both"
}

func (p plugged) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	dir, err := os.MkdirTemp("", "bench-plugin-")
	if err != nil {
		return nil, fmt.Errorf("make folder for the plugin: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) }
	beside, err := p.startMock(ctx, m, filepath.Join(dir, "s"), prefix)
	if err != nil {
		remove()
		return nil, err
	}
	node, err := p.startWith(ctx, m, s, prefix, []string{"--provider=plugin"}, "VKUBELET_PLUGIN_ENDPOINT=unix://"+filepath.Join(dir, "s"))
	if err != nil {
		beside.stop()
		remove()
		return nil, err
	}
	node.beside, node.stopped = beside, remove
	return node, nil
}

// startMock starts the plugin and returns when it listens.
func (plugged) startMock(ctx context.Context, m *machine, socket, node string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, mockPluginCommand, socket, node) //nolint:noctx // it is ended by stop, gently
	return m.startReady(ctx, "the plugin", cmd)
}

// runMockPlugin serves the provider that the program has too, as the program makes it.
func runMockPlugin(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("want a socket and the name of a node")
	}
	p, err := mock.Provider().New(ctx, cli.ProviderInput{NodeName: args[1], InternalIP: "127.0.0.1"})
	if err != nil {
		return err
	}
	return providerrpc.Serve(ctx, p, providerrpc.Options{
		Socket: args[0], Name: "mock", Listening: func(net.Addr) { _, _ = os.NewFile(3, "progress").WriteString("ready\n") }, // without it, the parent has ended
	})
}
