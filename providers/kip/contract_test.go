// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kip

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podjobtest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine/machinetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// TestContract runs the provider contract on a simulated cloud. Its machines are processes with the real agent.
func TestContract(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("agents run as root: run the test as root, as CI does")
	}
	h := podjobtest.Harness(t)
	h.Backend = backend
	h.Subject = providertest.Subject{Provider: "kip", Backend: "a simulated cloud whose machines are processes with the real agent; containers are programs of this machine, as root"}
	h.Except = map[string]string{
		"exec/terminal":   "a command in a machine has no terminal; TestTerminalIsRefused",
		"stats/summary":   "the process of a test is not a machine that could be measured",
		"settings/limits": "the kernel of a machine keeps limits; TestContainerWithTooMuchMemoryIsKilledAlone of the driver qemu",
	}
	h.Unproven = map[capability.Feature]string{
		capability.ContainerLimits: "the kernel of a machine keeps them; TestContainerWithTooMuchMemoryIsKilledAlone of the driver qemu",
		capability.HostPorts:       "a container has the ports of its machine; port-forward/both-ways connects with one there",
		capability.TokenVolumes:    "no check of the contract has tokens",
	}
	providertest.Run(t, h)
}

// testConfig returns a configuration with two sizes.
func testConfig(cluster string) Config {
	return Config{
		ClusterName: cluster, Image: "image-1", AuthorityFile: "unused", Containers: programs, QEMU: &QEMU{}, StartsPerMinute: 6000, MaxMachines: 100,
		KeepEnded: &metav1.Duration{Duration: time.Hour},
		Types: []Type{
			{Name: "large", CPU: resource.MustParse("4"), Memory: resource.MustParse("8Gi"), Price: new(resource.MustParse("0.4"))},
			{Name: "small", CPU: resource.MustParse("1"), Memory: resource.MustParse("1Gi"), Price: new(resource.MustParse("0.1")), SpotPrice: new(resource.MustParse("0.03"))},
		},
	}
}

// quick returns a fast pace for tests.
func quick() pace {
	return pace{
		busy: 100 * time.Millisecond, rest: 300 * time.Millisecond, seen: 2 * time.Second, earlier: time.Nanosecond, look: 50 * time.Millisecond,
		again: 20 * time.Millisecond, end: 5 * time.Second, stopAgain: 5 * time.Second, speak: 3 * time.Second,
	}
}

// backend returns a cloud for one check.
func backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	p, err := newProcesses()
	if err != nil {
		return nil, err
	}
	config, err := testConfig(env.Namespace).complete()
	if err != nil {
		return nil, err
	}
	authority, err := cell.NewAuthority()
	if err != nil {
		return nil, err
	}
	machineOf := func(pod *corev1.Pod) string {
		for _, m := range p.cloud.Running() {
			if m.Tags[identity.TagUID] == string(pod.UID) {
				return m.ID
			}
		}
		return ""
	}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return newDriver(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, config, p.cloud, authority, quick()).kit, nil
		},
		Close: func() error { p.close(); return nil },
		Instances: func(pod *corev1.Pod) (n int, err error) {
			for _, m := range p.cloud.Running() {
				if m.Tags[identity.TagUID] == string(pod.UID) && !p.status(m.ID).Ended { // an ended pod runs nothing in its machine
					n++
				}
			}
			return n, nil
		},
		Left: func() (map[string][]string, error) {
			var left []string
			for _, m := range p.cloud.Running() {
				left = append(left, m.ID)
			}
			return map[string][]string{"machines": left}, nil
		},
		Outage:     func(on bool) { p.cloud.Set(func(f *machinetest.Faults) { f.Dark = on }) },
		Throttle:   func(on bool) { p.cloud.Set(func(f *machinetest.Faults) { f.Throttled = on }) },
		LoseAnswer: func() { p.cloud.Set(func(f *machinetest.Faults) { f.LoseStarts = startTries }) },
		Lose: func(pod *corev1.Pod) error {
			id := machineOf(pod)
			if id == "" {
				return fmt.Errorf("pod %s has no machine", pod.Name)
			}
			p.cloud.Terminate(id, "Terminated")
			return nil
		},
		Kill: func(pod *corev1.Pod, _ string) error { return podjobtest.KillContainer(p.pid(machineOf(pod))) },
	}, nil
}
