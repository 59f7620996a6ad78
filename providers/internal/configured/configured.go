// SPDX-License-Identifier: Apache-2.0

// Package configured makes the functions of a cli.Provider from the steps of a provider with a configuration file.
//
// The guarantee: the node, the declaration and the check of pods read the same file in the same way.
//
// Note: the declaration and the check ignore incomplete settings, because only the node needs them.
package configured

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// Steps are the steps of a provider with a configuration of type C. All are required.
type Steps[C any] struct {
	// Load reads the configuration file at a path; an empty path means no file.
	Load func(path string) (C, error)
	// Complete fills the defaults of a configuration, and returns an error if a node cannot run with it.
	Complete func(C) (C, error)
	// Capabilities returns the declaration for a configuration.
	Capabilities func(C) capability.Declaration
	// New makes the provider of a node. The configuration is complete.
	New func(context.Context, cli.ProviderInput, C) (nodeutil.Provider, error)
	// Check returns the mapping of pods, as in cli.Provider. The configuration may lack required values.
	Check func(C) func(*corev1.Pod) error
}

// Provider returns p with its functions New, Capabilities and Check.
func Provider[C any](p cli.Provider, of Steps[C]) cli.Provider {
	p.New = func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
		config, err := of.Load(in.ConfigPath)
		if err == nil {
			config, err = of.Complete(config)
		}
		if err != nil {
			return nil, err
		}
		return of.New(ctx, in, config)
	}
	p.Capabilities = func(path string) (capability.Declaration, error) {
		config, err := of.Load(path)
		return of.Capabilities(config), err
	}
	p.Check = func(path string) (func(*corev1.Pod) error, error) {
		config, err := of.Load(path)
		config, _ = of.Complete(config) // the node reports missing settings
		return of.Check(config), err
	}
	return p
}
