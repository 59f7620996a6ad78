// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// Every plugin has these abilities. withAbilities adds the abilities that a plugin declares.
var (
	_ nodeutil.Provider             = (*plugin)(nil)
	_ nodeutil.ProbeMetricsProvider = (*plugin)(nil)
	_ node.PodTokensUser            = (*plugin)(nil)
	_ node.PullCredentialsUser      = (*plugin)(nil)
	_ node.BackgroundRunner         = (*plugin)(nil)
	_ node.NodeProvider             = (*plugin)(nil)
	_ capability.Declarer           = (*plugin)(nil)
	_ cli.NodeConfigurer            = (*plugin)(nil)
	_ node.PodNotifier              = reporting{}
	_ node.PodAuthority             = authoritative{}
	_ node.PodObjectsUser           = reading{}
)

// TestContract runs the contract of providers with a plugin. The same provider passes the contract as a built-in
// provider, so a failure here is caused by the protocol. The plugin outlives the node.
func TestContract(t *testing.T) {
	h := overTheWire(false)
	h.Subject = providertest.Subject{Provider: "plugin", Backend: "a plugin in Go, whose containers are goroutines"}
	providertest.Run(t, h)
}

// TestContractPluginRestarts is TestContract with a new plugin process for each new node.
func TestContractPluginRestarts(t *testing.T) { providertest.Run(t, overTheWire(true)) }

// overTheWire returns the harness of a provider whose containers are goroutines.
func overTheWire(restarts bool) providertest.Harness {
	return providertest.Harness{
		Backend: func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
			dir, err := os.MkdirTemp("", "vkp")
			if err != nil {
				return nil, err
			}
			cloud := inprocess.New(ctx)
			plugged := &plugged{socket: dir + "/s", provider: func() node.PodLifecycleHandler {
				return inprocess.Open(cloud, inprocess.Objects{ConfigMaps: env.ConfigMaps, Secrets: env.Secrets})
			}}
			fail := func(err error) func(bool) {
				return func(on bool) {
					if on {
						cloud.Fail(err)
					} else {
						cloud.Fail(nil)
					}
				}
			}
			return &providertest.Backend{
				Open: func(ctx context.Context) (node.PodLifecycleHandler, error) {
					if err := plugged.serve(restarts); err != nil {
						return nil, err
					}
					return New(ctx, Node{Node: env.Node, InternalIP: "192.0.2.1"}, Config{Endpoint: "unix://" + plugged.socket})
				},
				Close:      func() error { return errors.Join(plugged.end(), os.RemoveAll(dir)) },
				Instances:  func(pod *corev1.Pod) (int, error) { return cloud.Instances(pod.UID), nil },
				Kill:       func(pod *corev1.Pod, container string) error { return cloud.Kill(pod.UID, container) },
				Lose:       func(pod *corev1.Pod) error { return cloud.Lose(pod.UID) },
				Outage:     fail(inprocess.ErrOutage),
				Throttle:   fail(inprocess.ErrThrottled),
				LoseAnswer: cloud.LoseAnswer,
				Left:       func() (map[string][]string, error) { return cloud.Left(), nil },
			}, nil
		},
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Args = "program", p.Args()
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: 30 * time.Second, Tick: 100 * time.Millisecond, Parallel: 8,
	}
}

// plugged is a plugin in this process. It is not safe for concurrent use.
type plugged struct {
	socket   string
	provider func() node.PodLifecycleHandler
	cancel   context.CancelFunc // nil: the plugin does not run
	done     chan error
}

// serve starts the plugin if it does not run. If anew is set, it restarts a running one.
func (p *plugged) serve(anew bool) error {
	if p.cancel != nil && !anew {
		return nil
	}
	if err := p.end(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan error, 1)
	listening := make(chan struct{})
	go func() {
		p.done <- providerrpc.Serve(ctx, p.provider(), options(p.socket, func() { close(listening) }))
	}()
	select {
	case <-listening:
		return nil
	case err := <-p.done:
		p.cancel = nil
		cancel()
		return err
	}
}

func (p *plugged) end() error {
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	p.cancel = nil
	return <-p.done
}
