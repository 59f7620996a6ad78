// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract is what every provider promises.
//
// FILL(contract): open the provider on your service, or on an emulator of it. Where its images have a shell, providertest.Shell has the
// Container and the Command of the harness.
func TestContract(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Backend: func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
			m := newMemory(ctx)
			m.work = runProgram
			config, err := LoadConfig("")
			config.PollInterval.Duration = 5 * time.Millisecond
			return m.backend(func() *provider { return newProvider(m, config, env.Node.Name, env.Pods) }), err
		},
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Command = "contract", p.Args()
			return nil
		},
		Command:        func(p program.Program) ([]string, error) { return p.Args(), nil },
		OwnStartErrors: true, // the service in memory says no reasons
		Patience:       20 * time.Second, Tick: 50 * time.Millisecond, Parallel: 8,
	})
}

// backend is the service as the contract sees it, with its faults.
func (m *memory) backend(open func() *provider) *providertest.Backend {
	fail := func(err error) func(bool) {
		return func(on bool) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.fault = nil; on {
				m.fault = err
			}
		}
	}
	group := func(pod *corev1.Pod, f func(*memoryGroup)) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		g, err := m.find(string(pod.UID))
		if err == nil {
			f(g)
		}
		return err
	}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) { return open(), nil },
		Instances: func(pod *corev1.Pod) (n int, _ error) {
			_ = group(pod, func(g *memoryGroup) { // one that is not there has no instances
				for _, k := range g.containers {
					if k.now.State == stateRunning {
						n = 1
					}
				}
			})
			return n, nil
		},
		Kill: func(pod *corev1.Pod, container string) error {
			return group(pod, func(g *memoryGroup) {
				for _, k := range g.containers {
					if k.spec.Name == container {
						k.kill()
					}
				}
			})
		},
		Lose: func(pod *corev1.Pod) error {
			return group(pod, func(g *memoryGroup) {
				g.kill()
				m.drop(g)
			})
		},
		Outage:   fail(errors.New("no connection")),
		Throttle: fail(errors.New("429 Too Many Requests")),
		LoseAnswer: func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.loseAnswer = true
		},
	}
}

// runProgram does what the contract asks of containers and commands.
func runProgram(ctx context.Context, p process) int32 {
	prog, err := program.Parse(p.Command)
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
		return 126
	}
	w := program.World{
		Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Env: p.Env, Stop: p.Stop,
		Read:   func(string) ([]byte, fs.FileMode, error) { return nil, 0, fs.ErrNotExist },
		Write:  func(string, []byte) error { return fs.ErrPermission },
		Listen: func(_ context.Context, port int32) (net.Listener, error) { return p.Listen(port), nil },
	}
	if sizes := p.Session.Sizes; sizes != nil {
		w.Size, w.Resized = terminal(sizes)
	}
	return prog.Run(ctx, w)
}

// terminal follows the size of a terminal until its session ends.
func terminal(sizes <-chan api.TermSize) (size func() (rows, columns int, err error), resized <-chan struct{}) {
	var mu sync.Mutex
	now := <-sizes
	changed := make(chan struct{}, 1)
	go func() {
		for next := range sizes {
			mu.Lock()
			now = next
			mu.Unlock()
			changed <- struct{}{}
		}
	}()
	return func() (int, int, error) {
		mu.Lock()
		defer mu.Unlock()
		return int(now.Height), int(now.Width), nil
	}, changed
}
