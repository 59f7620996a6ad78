// SPDX-License-Identifier: Apache-2.0

package mock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/mock"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// TestContract runs the contract of providers in fake time.
func TestContract(t *testing.T) {
	provider := mock.Provider()
	h := providertest.Harness{
		Backend: func(_ context.Context, env providertest.Env) (*providertest.Backend, error) {
			return &providertest.Backend{Open: func(ctx context.Context) (node.PodLifecycleHandler, error) {
				return provider.New(ctx, cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name, InternalIP: "192.0.2.1"})
			}}, nil
		},
		Subject: providertest.Subject{Provider: "mock", Backend: "simulated pods, in fake time"},
	}
	provider.Contract(&h)
	var r providertest.Report
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = providertest.Verify(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	})
	for _, k := range r.Results {
		switch k.Outcome {
		case providertest.Failed:
			t.Errorf("%s: %s", k.Name, k.Detail)
		case providertest.Skipped:
			t.Logf("%s is skipped: %s", k.Name, k.Detail)
		}
	}
	if n := r.Count(providertest.Passed); n < 40 {
		t.Errorf("%d checks passed, want 40 at least", n)
	}
	if err := r.Keep(h.Subject); err != nil {
		t.Error(err)
	}
}
