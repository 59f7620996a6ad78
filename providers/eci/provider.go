// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// Provider returns the provider eci.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "eci", Aliases: []string{"alibabacloud", "alicloud"},
		New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			if config, err = config.complete(); err != nil {
				return nil, err
			}
			next, err := transport(config.CAFile)
			if err != nil {
				return nil, fmt.Errorf("eci provider: %w", err)
			}
			return newProvider(in, config, next), nil
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
	}
}

var (
	_ nodeutil.Provider     = (*provider)(nil)
	_ node.PodNotifier      = (*provider)(nil)
	_ node.PodAuthority     = (*provider)(nil)
	_ node.PodObjectsUser   = (*provider)(nil)
	_ node.PodTokensUser    = (*provider)(nil)
	_ node.BackgroundRunner = (*provider)(nil)
	_ node.NodeProvider     = (*provider)(nil)
	_ capability.Declarer   = (*provider)(nil)
	_ cli.NodeConfigurer    = (*provider)(nil)
	_ cli.Examiner          = (*provider)(nil)
)

// provider runs pods in ECI.
type provider struct {
	config  Config
	client  *client
	groups  *groups
	mapping mapping
	cache   *poll.Cache[instance]
	shells  shells
	roots   *x509.CertPool // of sessions too; nil for those of this machine
	pods    corev1listers.PodLister
	listed  func() bool // pods has all that the API server has

	// Set before RunInBackground, constant afterwards.
	objects node.PodObjects
	tokens  node.PodTokens
}

// newProvider returns the provider of a configuration that is complete. Requests go through next.
func newProvider(in cli.ProviderInput, config Config, next *http.Transport) *provider {
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.NodeName}
	p := &provider{
		config: config, mapping: mapping{config: config, owner: owner}, pods: in.Pods, listed: in.Listed,
		client: newClient(config.Endpoint, config.Region, next, config.keys(next, config.clock()), config.clock()),
	}
	if next.TLSClientConfig != nil {
		p.roots = next.TLSClientConfig.RootCAs
	}
	if p.listed == nil {
		p.listed = func() bool { return true }
	}
	p.groups = newGroups(p.client, owner, p.hasInits)
	p.groups.inCluster = p.running
	p.cache = p.newCache()
	return p
}

// NotifyPods implements node.PodNotifier.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.cache.Notify(notify) }

// UsePodObjects implements node.PodObjectsUser.
func (p *provider) UsePodObjects(objects node.PodObjects) { p.objects = objects }

// UsePodTokens implements node.PodTokensUser.
func (p *provider) UsePodTokens(tokens node.PodTokens) { p.tokens = tokens }

// RunInBackground implements node.BackgroundRunner. ECI is asked once the pods of the cluster are known: what its groups are follows from those.
func (p *provider) RunInBackground(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), p.listed) {
		return nil // it ends
	}
	p.cache.Run(ctx)
	return nil
}

// AnswersForAllPods implements node.PodAuthority: lists of ECI are complete, or errors. What an earlier process created last may come late.
func (p *provider) AnswersForAllPods() bool { return p.cache.Complete() }

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }

// AttachToContainer fails: ECI has exec and logs only.
func (p *provider) AttachToContainer(ctx context.Context, namespace, name, _ string, _ api.AttachIO) error {
	return p.lacks(ctx, namespace, name, "attach: use exec or logs")
}

// PortForward fails: ECI has no such request.
func (p *provider) PortForward(ctx context.Context, namespace, name string, _ int32, _ io.ReadWriteCloser) error {
	return p.lacks(ctx, namespace, name, "port-forward: reach the pod by its address in the VPC")
}

// GetStatsSummary has the node only: what groups use is in CloudMonitor.
func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.mapping.owner.Node}}, nil
}

// GetMetricsResource returns none.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }

// lacks refuses a request that ECI does not have, for a pod that is there.
func (p *provider) lacks(ctx context.Context, namespace, name, what string) error {
	if _, err := p.GetPod(ctx, namespace, name); err != nil {
		return err
	}
	return errdefs.InvalidInputf("pod %s/%s: ECI has no %s", namespace, name, what)
}
