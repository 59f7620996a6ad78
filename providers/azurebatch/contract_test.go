// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podjobtest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// TestContract runs the provider contract on an emulator of Azure Batch whose tasks run the real program.
func TestContract(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tasks run as root: run the test as root, as CI does")
	}
	h := podjobtest.Harness(t)
	h.Backend = backend
	h.Subject = providertest.Subject{Provider: "azurebatch", Backend: "an emulator of Azure Batch on one machine; containers are programs of it, as root"}
	h.Except = map[string]string{
		"settings/limits": "nothing on a machine of the pool keeps limits; TestSlots has how pods share machines",
		"exec/terminal":   "a command in a job has no terminal",
		"stats/summary":   "what tasks use is not told by Batch",
	}
	h.Unproven = map[capability.Feature]string{
		capability.ContainerLimits: "nothing on a machine of the pool keeps them",
		capability.HostPorts:       "a container has the ports of its machine; port-forward/both-ways connects with one there",
		capability.TokenVolumes:    "no check of the contract has tokens; TestNoSecretInTask has one",
	}
	providertest.Run(t, h)
}

// backend returns a cloud for one check.
func backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	c, err := startCloud(ctx, aPool(), 4, nil)
	if err != nil {
		return nil, err
	}
	c.front.Forget()
	context.AfterFunc(ctx, c.close)
	config, err := c.config(env.Namespace).complete()
	if err != nil {
		return nil, err
	}
	storage := []string{"ListTasks", "CreateTask", "GetTask", "DeleteTask", "GetPool", "CreateJob"}
	mends := map[string]func(){}
	breaks := func(name string, f emulator.Fault) func(bool) {
		return func(on bool) {
			if mend := mends[name]; mend != nil {
				mend()
				mends[name] = nil
			}
			if on {
				f.Operations = storage
				mends[name] = c.front.Break(f)
			}
		}
	}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			d, err := newDriver(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, config, quick())
			if err != nil {
				return nil, err
			}
			return d.kit, nil
		},
		Instances: func(pod *corev1.Pod) (int, error) {
			if c.processes.PID(taskID(pod.UID)) == 0 {
				return 0, nil
			}
			var said podjob.Status
			for _, name := range c.Store.Names("vk-") {
				if strings.HasSuffix(name, "/status/"+string(pod.UID)) && json.Unmarshal(c.Store.Data(name), &said) == nil && said.Ended {
					return 0, nil // the task is about to end, and no process runs in it
				}
			}
			if state, _ := c.State(taskID(pod.UID)); state == "" { // its blobs may be removed before its process ends
				if _, err := podjobtest.FindContainer(c.processes.PID(taskID(pod.UID))); err != nil {
					return 0, nil //nolint:nilerr // it has ended
				}
			}
			return 1, nil
		},
		Kept: map[string]providertest.Kept{"jobs": {Most: 1, Rule: "the job of the node, for its next pods"}, "programs": {Most: 1, Rule: "the program of tasks, for the next ones"}},
		Left: func() (map[string][]string, error) {
			left := map[string][]string{"jobs": c.Jobs(), "blobs": c.Store.Names("vk-"), "programs": c.Store.Names("bin/")}
			for _, t := range c.Tasks() {
				left["tasks"] = append(left["tasks"], t.ID)
			}
			return left, nil
		},
		Outage:     breaks("outage", emulator.Fault{Answer: emulated.Down}),
		Throttle:   breaks("throttle", emulator.Fault{Answer: emulated.Throttle}),
		LoseAnswer: func() { c.front.Break(emulator.Fault{Operations: []string{"CreateTask"}, Times: 1, Lose: true}) },
		Lose:       func(pod *corev1.Pod) error { return c.RemoveTask(taskID(pod.UID)) },
		Kill: func(pod *corev1.Pod, _ string) error {
			return podjobtest.KillContainer(c.processes.PID(taskID(pod.UID)))
		},
	}, nil
}
