// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// A test of your own provider looks like this. Its pods run in an image with a shell.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestContract(t *testing.T)
		container, command := providertest.Shell("busybox")
		providertest.Run(t, providertest.Harness{
			Container: container, Command: command,
			Backend: func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
				cloud := inprocess.New(ctx) // in your test: the service, or an emulator of it
				return &providertest.Backend{
					Open: func(context.Context) (node.PodLifecycleHandler, error) {
						return inprocess.Open(cloud, inprocess.Objects{ConfigMaps: env.ConfigMaps, Secrets: env.Secrets}), nil
					},
				}, nil
			},
		})
	}
	// Output:
}
