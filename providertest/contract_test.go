// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// inProcess returns the harness of the provider whose containers are goroutines. wrap adds defects to the provider; its context ends with
// the backend.
func inProcess(wrap func(ctx context.Context, p *inprocess.Provider) node.PodLifecycleHandler) providertest.Harness {
	return providertest.Harness{
		Backend: func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
			cloud := inprocess.New(ctx)
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
				Open: func(context.Context) (node.PodLifecycleHandler, error) {
					return wrap(ctx, inprocess.Open(cloud, inprocess.Objects{ConfigMaps: env.ConfigMaps, Secrets: env.Secrets})), nil
				},
				Instances:  func(pod *corev1.Pod) (int, error) { return cloud.Instances(pod.UID), nil },
				Kill:       func(pod *corev1.Pod, container string) error { return cloud.Kill(pod.UID, container) },
				Lose:       func(pod *corev1.Pod) error { return cloud.Lose(pod.UID) },
				Outage:     fail(inprocess.ErrOutage),
				Throttle:   fail(inprocess.ErrThrottled),
				Stale:      cloud.Stale,
				LoseAnswer: cloud.LoseAnswer,
				Left:       func() (map[string][]string, error) { return cloud.Left(), nil },
			}, nil
		},
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Args = "program", p.Args()
			return nil
		},
		Command: func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
	}
}

// verify checks the contract in fake time.
func verify(t *testing.T, h providertest.Harness) (r providertest.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = providertest.Verify(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

func TestInProcess(t *testing.T) {
	r := verify(t, inProcess(func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return p }))
	for _, k := range r.Results {
		t.Logf("%s %s (%s) %s", k.Outcome, k.Name, k.Took, k.Detail)
	}
	for _, name := range r.Failed() {
		t.Errorf("failed: %s", name)
	}
}
