// SPDX-License-Identifier: Apache-2.0

// Package azurebatch is a provider that runs pods as tasks of Azure Batch, on an existing pool of virtual machines.
//
// The guarantee: a pod runs once, even if Batch reruns its task. Tasks contain nothing secret. The statuses of pods are in blobs, which outlive the
// machines.
//
// Note: each task runs this program itself. The program pulls images and runs containers, so the pool must not have a containerConfiguration,
// which would run every task inside a container.
package azurebatch

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podblobs"
)

//go:embed README.md
var readme string

// Provider returns the provider azurebatch.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "azurebatch", Readme: readme, Aliases: []string{"batch"}}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete, Capabilities: Config.Capabilities,
		New: func(ctx context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			if runtime.GOOS != "linux" {
				return nil, errors.New("azurebatch provider: it runs on Linux only: tasks run the same program")
			}
			d, err := newDriver(in, config, usual)
			if err != nil {
				return nil, err
			}
			if _, err := d.poolMachines(ctx); errors.Is(err, errContainers) { // other problems may be temporary
				return nil, fmt.Errorf("azurebatch provider: %w", err)
			}
			return d.kit, nil
		},
		Check: func(config Config) func(*corev1.Pod) error { return config.refusePod },
	})
}

// newDriver returns the driver for a complete configuration, with its provider.
func newDriver(in cli.ProviderInput, config Config, at pace) (*driver, error) {
	client, token, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("azurebatch provider: %w", err)
	}
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.Node.Name}
	d := &driver{
		config: config, in: in, owner: owner, client: client, job: "vk-" + identity.Hash(owner.Cluster, owner.Node), at: at,
		tasks: map[types.UID]taskState{}, lost: map[types.UID]string{}, stopping: map[types.UID]time.Time{},
		logins: map[string]login{}, key: sync.OnceValues(newKey),
	}
	d.Streams = d.openStream
	blobs := &azblobs.Container{URL: config.Storage.ContainerURL, HTTP: client.http, Token: token}
	d.pods = podblobs.New(blobs, d.job, config.Storage.Identity, at.look)
	d.kit = service.New(service.Config{
		Service: "Azure Batch", Owner: owner, Capabilities: config.Capabilities(), Pods: in.Pods, Listed: in.Listed, Again: service.AgainReturnsFirst,
		Busy: at.busy, Rest: at.rest, ListEvery: at.list, SeenWithin: at.seen, LogsUnseen: true,
		Skips: func(*corev1.Volume) bool { return true }, // the program of tasks writes volumes from the objects
	}, d)
	return d, nil
}
