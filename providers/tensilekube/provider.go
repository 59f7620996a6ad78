// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"context"
	_ "embed"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

//go:embed README.md
var readme string

// Provider returns the provider named tensilekube.
func Provider() cli.Provider {
	return cli.Provider{
		Name:    "tensilekube",
		Aliases: []string{"k8s"}, // the name of Tensile Kube's own provider
		Readme:  readme,
		New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			access, err := config.lowerAccess()
			if err != nil {
				return nil, err
			}
			return newProvider(in, config, access)
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
		Check: func(path string) (func(*corev1.Pod) error, error) {
			config, err := LoadConfig(path)
			return remotecluster.Config{Place: config.podPlacement, StorageClasses: config.StorageClasses}.Check, err
		},
	}
}

var (
	_ nodeutil.Provider     = (*provider)(nil)
	_ node.PodNotifier      = (*provider)(nil)
	_ node.PodObjectsUser   = (*provider)(nil)
	_ node.PodTokensUser    = (*provider)(nil)
	_ node.PodClaimsUser    = (*provider)(nil)
	_ node.BackgroundRunner = (*provider)(nil)
	_ node.NodeProvider     = (*provider)(nil)
	_ capability.Declarer   = (*provider)(nil)
	_ cli.NodeConfigurer    = (*provider)(nil)
	_ cli.Examiner          = (*provider)(nil)

	_ nodeutil.VolumeProvisioner  = (*provider)(nil)
	_ nodeutil.EndpointSlicesUser = (*provider)(nil)
)

// provider runs pods in the lower cluster. It does not implement node.PodAuthority, because missing pods are not
// certainly gone: the lower cluster may have been restored from an older state.
type provider struct {
	*remotecluster.Cluster
	config Config
}

func newProvider(in cli.ProviderInput, config Config, access *rest.Config) (*provider, error) {
	config, err := config.completeConfig()
	if err != nil {
		return nil, err
	}
	access = rest.CopyConfig(access)
	if access.QPS == 0 {
		access.QPS, access.Burst = float32(config.QPS), config.Burst
	}
	cluster, err := remotecluster.New(remotecluster.Config{
		Home: remotecluster.Home{Cluster: config.ClusterName, Node: in.Node.Name}, REST: access,
		Namespace: config.Namespace, Namespaces: config.Namespaces, ServiceAccount: config.ServiceAccount,
		Place: config.podPlacement, Annotations: config.showsAnnotation, StorageClasses: config.StorageClasses, Global: config.selectGlobal(), Capacity: config.Capacity, Pods: in.Pods, Services: in.Services, Listed: in.Listed,
		Claim: true, Recorder: in.Recorder, RefreshEvery: config.refreshEvery,
	})
	if err != nil {
		return nil, err
	}
	return &provider{Cluster: cluster, config: config}, nil
}

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }
