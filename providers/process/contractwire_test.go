// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc"
	"github.com/virtual-kubelet/virtual-kubelet/providers/plugin"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// TestContractOverTheWire checks that the provider keeps the contract as a plugin as well. The plugin is
// restarted with the node.
func TestContractOverTheWire(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containers of another user than this one need root: run the test as root, as CI does")
	}
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	h := contract(images)
	direct := h.Backend
	h.Backend = func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
		b, err := direct(ctx, env)
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp("", "vkp") //nolint:usetesting // the path of t.TempDir is too long for a socket
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		open, shut := b.Open, b.Close
		before := make(chan error, 1) // how the previous plugin ended
		before <- nil
		b.Open = func(ctx context.Context) (node.PodLifecycleHandler, error) {
			if err := <-before; err != nil {
				return nil, err
			}
			socket := filepath.Join(dir, "s")
			p, err := open(ctx)
			if err != nil {
				before <- nil
				return nil, err
			}
			listening := make(chan struct{})
			go func() {
				before <- providerrpc.Serve(ctx, p, providerrpc.Options{Socket: socket, Name: "process", Listening: func(net.Addr) { close(listening) }})
			}()
			select {
			case <-listening:
				return plugin.New(ctx, plugin.Node{Node: env.Node, InternalIP: "127.0.0.1"}, plugin.Config{Endpoint: "unix://" + socket})
			case err := <-before:
				before <- nil
				return nil, err
			}
		}
		b.Close = func() error { return errors.Join(<-before, shut(), os.RemoveAll(dir)) }
		return b, nil
	}
	providertest.Run(t, h)
}
