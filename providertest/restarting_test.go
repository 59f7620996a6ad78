// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// restarting is a provider whose backend restarts every container that ends.
type restarting struct{ *inprocess.Provider }

func (r restarting) Capabilities() capability.Declaration {
	return r.Provider.Capabilities().Lacks("the backend restarts every container", capability.RunToCompletion, capability.Sidecars, capability.TerminationMessages)
}

// CreatePod refuses a pod that the node should not have given to it.
func (r restarting) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if policy := pod.Spec.RestartPolicy; policy != corev1.RestartPolicyAlways {
		return errdefs.InvalidInputf("spec.restartPolicy: %s: the backend restarts every container", policy)
	}
	return r.Provider.CreatePod(ctx, pod)
}

// TestBackendThatRestartsEverythingKeepsTheContract: a provider without RunToCompletion gets no pod that ends.
// The contract proves its other features with pods that stay.
func TestBackendThatRestartsEverythingKeepsTheContract(t *testing.T) {
	r := verify(t, inProcess(func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return restarting{p} }))
	for _, k := range r.Results {
		if k.Outcome == providertest.Failed {
			t.Errorf("%s: %s", k.Name, k.Detail)
		}
		if k.Name == "restarts/never" && k.Detail != "the provider does not declare RunToCompletion" {
			t.Errorf("%s is %s: %q, want it skipped", k.Name, k.Outcome, k.Detail)
		}
	}
	for _, f := range r.Features {
		if f.Outcome != providertest.Passed {
			t.Errorf("feature %s is not proven: %s", f.Feature, f.Detail)
		}
	}
}
