// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the checks of a pod's identity and life cycle. The other checks need containers that run a
// program, and pods of this example run nothing.
func TestContract(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Backend: func(context.Context, providertest.Env) (*providertest.Backend, error) {
			p := &provider{pods: map[string]*corev1.Pod{}}
			return &providertest.Backend{Open: func(context.Context) (node.PodLifecycleHandler, error) { return p, nil }}, nil
		},
		Only:     regexp.MustCompile("^(creation|identity|deletion|errors|lists|reports)/"),
		Except:   map[string]string{"errors/no-port-forward": "each port answers here"},
		Patience: 5 * time.Second, Tick: 100 * time.Millisecond, Parallel: 8,
		Container: func(_ *corev1.Pod, c *corev1.Container, does program.Program) error {
			c.Image = "example"
			if does.Stay != program.Forever || does.Tick != 0 || len(does.Print) > 0 {
				return errors.New("the pods of this example run nothing")
			}
			return nil
		},
	})
}
