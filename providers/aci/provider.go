// SPDX-License-Identifier: Apache-2.0

// Package aci runs pods in Azure Container Instances (ACI): each pod is a container group.
//
// The guarantee: everything that a group cannot have is refused, with the field of the pod. A group belongs to
// one pod forever, by its name and its tags, so a repeated create makes no second group. A group is gone only
// when ACI says so.
//
// Note: lists of ACI do not show the states of containers. The provider follows starting groups by
// lists, and running groups one by one, as many a minute as Config.Requests allows. So the delay until an end is
// seen depends on the number of running pods.
package aci

import (
	"context"
	_ "embed"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
)

//go:embed README.md
var readme string

// Provider returns the provider aci.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "aci", Readme: readme, Aliases: []string{"azure"}}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete, Capabilities: Config.Capabilities,
		New: func(_ context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			d, err := newDriver(in, config, pace{})
			if err != nil {
				return nil, err
			}
			return d.kit, nil
		},
		Check: func(config Config) func(*corev1.Pod) error {
			return (&driver{config: config, mapping: mapping{config: config}}).check
		},
	})
}
