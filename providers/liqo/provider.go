// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	_ "embed"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

//go:embed README.md
var readme string

// Provider returns the provider named liqo.
func Provider() cli.Provider {
	return cli.Provider{
		Name:   "liqo",
		Readme: readme,
		New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			access, err := config.remoteAccess()
			if err != nil {
				return nil, err
			}
			home, err := config.homeAccess()
			if err != nil {
				return nil, err
			}
			return newProvider(in, config, access, home)
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
		Check: func(path string) (func(*corev1.Pod) error, error) {
			_, err := LoadConfig(path)
			return remotecluster.Config{}.Check, err
		},
	}
}

var (
	_ nodeutil.Provider     = (*provider)(nil)
	_ node.PodNotifier      = (*provider)(nil)
	_ node.PodObjectsUser   = (*provider)(nil)
	_ node.PodTokensUser    = (*provider)(nil)
	_ node.BackgroundRunner = (*provider)(nil)
	_ node.NodeProvider     = (*provider)(nil)
	_ capability.Declarer   = (*provider)(nil)
	_ cli.NodeConfigurer    = (*provider)(nil)
	_ cli.Examiner          = (*provider)(nil)

	_ nodeutil.EndpointSlicesUser = (*provider)(nil)
)

// Labels of ShadowPods, and so of their pods, that Liqo reads.
const (
	labelOrigin      = group + "/origin"
	labelDestination = group + "/destination"
)

// reasonBackOff is Liqo's status reason for a pod that the remote cluster does not accept.
const reasonBackOff = "OffloadingBackOff"

// shadowPods describes the kind ShadowPod, the owner of pods in the remote cluster.
var shadowPods = remotecluster.OwnerKind{
	Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: "shadowpods"}, Kind: "ShadowPod",
	Spec: []string{"spec", "pod"}, Status: []string{"status"}, Remakes: true,
}

// provider runs pods in the remote cluster. It does not implement node.PodAuthority, because missing pods are not
// certainly gone: the remote cluster may have been restored from an older state.
type provider struct {
	*remotecluster.Cluster
	config     Config
	namespaces *namespaces
}

// newProvider returns a provider. access and home are the client configurations for the remote and the home
// cluster; home may be nil.
func newProvider(in cli.ProviderInput, config Config, access, home *rest.Config) (*provider, error) {
	config, err := config.completeConfig()
	if err != nil {
		return nil, err
	}
	access = rest.CopyConfig(access)
	if access.QPS == 0 {
		access.QPS, access.Burst = float32(config.QPS), config.Burst
	}
	p := &provider{config: config}
	if p.namespaces, err = newNamespaces(config, home); err != nil {
		return nil, err
	}
	p.Cluster, err = remotecluster.New(remotecluster.Config{
		Home: remotecluster.Home{Cluster: config.ClusterName, Node: in.Node.Name}, REST: access, Owner: &shadowPods,
		Namespace: config.onlyNamespace(), NamespaceOf: p.namespaces.remoteOf, ServiceAccount: config.ServiceAccount,
		Labels: map[string]string{labelOrigin: config.ClusterName, labelDestination: config.ForeignClusterID},
		Place:  func(*corev1.Pod) (remotecluster.Placement, error) { return config.Placement, nil }, Annotations: config.showsAnnotation,
		Claim: true, Global: config.selectReflected(), Recorder: in.Recorder, Capacity: config.Capacity, Pods: in.Pods, Services: in.Services, Listed: in.Listed, RefreshEvery: config.refreshEvery,
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }

// RunInBackground watches both clusters until ctx ends.
func (p *provider) RunInBackground(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { p.namespaces.watchMaps(ctx) })
	return p.Cluster.RunInBackground(ctx)
}

// CreatePod creates the ShadowPod and the objects that the pod needs. If Liqo does not accept the pod, the error
// contains reasonBackOff.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if _, err := p.namespaces.remoteOf(pod.Namespace); err != nil {
		return fmt.Errorf("%s: %s", reasonBackOff, err.Error()) // drop the kind, which is about the namespace
	}
	err := p.Cluster.CreatePod(ctx, pod)
	if apierrors.IsForbidden(err) { // refused by Liqo's webhook, because of a quota or the cluster IDs
		return fmt.Errorf("%s: %w", reasonBackOff, err)
	}
	return err
}
