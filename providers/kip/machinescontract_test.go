// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kip

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine/machinetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// faulty is a cloud with injected faults.
type faulty struct {
	machine.Driver

	authority *cell.Authority

	mu     sync.Mutex
	faults machinetest.Faults // guarded by mu; Dark, LoseStarts and Throttled
	ended  map[string]bool    // guarded by mu; keyed by ID: machines whose pod had ended before the node stopped them
}

func (f *faulty) set(change func(*machinetest.Faults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.faults)
}

func (f *faulty) fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.faults.Dark:
		return errors.New("the cloud does not answer")
	case f.faults.Throttled:
		return machine.Refuse(machine.Throttled, errdefs.RetryAfter(errors.New("too many requests"), time.Second))
	}
	return nil
}

// Start implements machine.Driver.
func (f *faulty) Start(ctx context.Context, s machine.Spec) (machine.Machine, error) {
	if err := f.fault(); err != nil {
		return machine.Machine{}, err
	}
	m, err := f.Driver.Start(ctx, s)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults.LoseStarts > 0 {
		f.faults.LoseStarts--
		return machine.Machine{}, errors.New("the answer was lost")
	}
	return m, err
}

// Stop implements machine.Driver. The agent of a stopped machine does not answer any more, so Stop asks it first.
func (f *faulty) Stop(ctx context.Context, id string) error {
	if err := f.fault(); err != nil {
		return err
	}
	if m, found, err := f.Describe(ctx, id); err == nil && found {
		f.hasEnded(ctx, m)
	}
	return f.Driver.Stop(ctx, id)
}

// hasEnded reports whether the agent of a machine says, or said before the stop of the machine, that its pod has ended.
func (f *faulty) hasEnded(ctx context.Context, m machine.Machine) bool {
	c := f.authority.Client(m.Tags[tagToken], m.Address)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ended := false
	_ = c.Watch(ctx, func(s cell.State) { // an agent that does not answer has not ended its pod
		ended = s.Status != nil && s.Status.Ended
		cancel()
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended[m.ID] = f.ended[m.ID] || ended
	return f.ended[m.ID]
}

// List implements machine.Driver.
func (f *faulty) List(ctx context.Context, tags map[string]string) ([]machine.Machine, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.Driver.List(ctx, tags)
}

// Tag implements machine.Driver.
func (f *faulty) Tag(ctx context.Context, id string, tags map[string]string) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Driver.Tag(ctx, id, tags)
}

// TestContractOnMachines runs the provider contract with machines of QEMU. `make kip-contract` runs it, because it takes half an hour.
func TestContractOnMachines(t *testing.T) {
	if os.Getenv("VK_KIP_CONTRACT") == "" {
		t.Skip("make kip-contract runs it")
	}
	image := cellImage(t)
	container, command := providertest.Shell("none")
	providertest.Run(t, providertest.Harness{
		Backend: func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
			return machinesBackend(ctx, env, image)
		},
		Container: container, Command: command, Patience: bootTime, Every: 200 * time.Millisecond, Tick: 3 * time.Second, Parallel: 2, Many: 3,
		AllowUnproven: true, // no process outside of a machine can kill a process in it
		Except: map[string]string{
			"exec/terminal":   "a command in a machine has no terminal; TestTerminalIsRefused",
			"settings/limits": "the machine is the limit of the pod; TestSizeOfAMachine has the size that it gets",
		},
	})
}

// machinesBackend returns machines of QEMU for one check.
func machinesBackend(ctx context.Context, env providertest.Env, image string) (*providertest.Backend, error) {
	dir, err := os.MkdirTemp("", "kip-")
	if err != nil {
		return nil, err
	}
	config, err := Config{
		ClusterName: env.Namespace, Directory: dir, Image: image, Containers: programs, QEMU: &QEMU{}, Types: []Type{smallType},
		KeepEnded: &metav1.Duration{Duration: time.Hour}, StartsPerMinute: 6000,
	}.complete()
	if err != nil {
		return nil, err
	}
	machines, at, err := config.open(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := cell.NewAuthority()
	if err != nil {
		return nil, err
	}
	cloud := &faulty{Driver: machines, authority: authority, ended: map[string]bool{}}
	machinesOf := func(tags map[string]string) (some []machine.Machine, err error) {
		all, err := machines.List(context.WithoutCancel(ctx), tags)
		for _, m := range all {
			if m.State != machine.Gone {
				some = append(some, m)
			}
		}
		return some, err
	}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return newDriver(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, config, cloud, authority, at).kit, nil
		},
		Close: func() error {
			all, err := machinesOf(nil)
			for _, m := range all {
				err = errors.Join(err, machines.Stop(context.Background(), m.ID))
			}
			return errors.Join(err, os.RemoveAll(dir))
		},
		Instances: func(pod *corev1.Pod) (n int, err error) {
			all, err := machinesOf(map[string]string{identity.TagUID: string(pod.UID)})
			for _, m := range all {
				if !cloud.hasEnded(ctx, m) { // an ended pod runs nothing in its machine
					n++
				}
			}
			return n, err
		},
		Left: func() (map[string][]string, error) {
			all, err := machinesOf(nil)
			var left []string
			for _, m := range all {
				left = append(left, m.ID)
			}
			return map[string][]string{"machines": left}, err
		},
		Outage:     func(on bool) { cloud.set(func(f *machinetest.Faults) { f.Dark = on }) },
		Throttle:   func(on bool) { cloud.set(func(f *machinetest.Faults) { f.Throttled = on }) },
		LoseAnswer: func() { cloud.set(func(f *machinetest.Faults) { f.LoseStarts = startTries }) },
		Lose: func(pod *corev1.Pod) error {
			all, err := machinesOf(map[string]string{identity.TagUID: string(pod.UID)})
			if err == nil && len(all) != 1 {
				err = fmt.Errorf("pod %s has %d machines", pod.Name, len(all))
			}
			if err != nil {
				return err
			}
			return machines.Stop(ctx, all[0].ID)
		},
	}, nil
}
