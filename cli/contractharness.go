// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// contractHarness returns the harness, which opens the provider as a node does, with the cluster of the check.
func (o *options) contractHarness(p Provider, f *contractFlags, version string) providertest.Harness {
	h := providertest.Harness{
		Subject: providertest.Subject{Provider: p.Name, Version: version, Backend: f.backend, Image: f.image},
		Backend: func(_ context.Context, env providertest.Env) (*providertest.Backend, error) {
			return &providertest.Backend{Open: func(ctx context.Context) (node.PodLifecycleHandler, error) {
				config := env.ProviderConfig
				config.Node = env.Node.DeepCopy() // the provider may write into it at each opening
				config.Node.Labels = map[string]string{corev1.LabelOSStable: o.OperatingSystem}
				made, _, err := o.newProvider(ctx, p)(config)
				return made, err
			}}, nil
		},
		Patience: f.patience, Every: contractEvery, Many: f.many, Only: f.names, AllowUnproven: true, OwnStartErrors: true,
	}
	if f.program == "" {
		h.Container, h.Command = providertest.Shell(f.image)
	} else {
		h.Container, h.Command = contractProgram(f.image, f.program)
	}
	if p.Contract != nil {
		p.Contract(&h)
	}
	return h
}

// contractProgram is providertest.Shell for an image with the program of the contract at a path.
func contractProgram(image, path string) (container func(*corev1.Pod, *corev1.Container, program.Program) error, command func(program.Program) ([]string, error)) {
	return func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
		c.Image, c.Command, c.Args = image, []string{path}, p.Args()
		return nil
	}, func(p program.Program) ([]string, error) { return append([]string{path}, p.Args()...), nil }
}
