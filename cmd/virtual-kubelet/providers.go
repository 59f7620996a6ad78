// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/cri"
	"github.com/virtual-kubelet/virtual-kubelet/providers/mock"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// providers are the built-in providers.
func providers() []cli.Provider {
	return []cli.Provider{
		{Name: "cri", New: newCRI, Capabilities: capabilitiesOfCRI},
		{Name: "mock", New: newMock},
		{Name: "process", New: newProcess, Capabilities: capabilitiesOfProcess},
	}
}

func newCRI(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
	config, err := cri.LoadConfig(in.ConfigPath)
	if err != nil {
		return nil, err
	}
	if config.ClusterDomain == "" {
		config.ClusterDomain = in.KubeClusterDomain
	}
	return cri.New(in.Node, in.Recorder, config)
}

func capabilitiesOfCRI(path string) (capability.Declaration, error) {
	config, err := cri.LoadConfig(path)
	return config.Capabilities(), err
}

func newMock(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
	config, err := mock.LoadConfig(in.ConfigPath, in.NodeName)
	if err != nil {
		return nil, err
	}
	return mock.New(mock.Node{
		Name:            in.NodeName,
		OperatingSystem: in.OperatingSystem,
		InternalIP:      in.InternalIP,
		DaemonPort:      in.DaemonPort,
	}, config)
}

func newProcess(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
	config, err := process.LoadConfig(in.ConfigPath)
	if err != nil {
		return nil, err
	}
	return process.New(ctx, process.Node{
		Node:          in.Node,
		Recorder:      in.Recorder,
		InternalIP:    in.InternalIP,
		ClusterDomain: in.KubeClusterDomain,
		DaemonPort:    in.DaemonPort,
	}, config)
}

func capabilitiesOfProcess(path string) (capability.Declaration, error) {
	config, err := process.LoadConfig(path)
	return config.Capabilities(), err
}
