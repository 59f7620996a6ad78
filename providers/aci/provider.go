// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/nodehealth"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// Provider returns the provider aci.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "aci", Aliases: []string{"azure"},
		New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err == nil {
				config, err = config.complete()
			}
			if err != nil {
				return nil, err
			}
			return newProvider(in, config, pace{})
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
	}
}

var (
	_ nodeutil.Provider        = (*provider)(nil)
	_ node.PodNotifier         = (*provider)(nil)
	_ node.PodAuthority        = (*provider)(nil)
	_ node.PodObjectsUser      = (*provider)(nil)
	_ node.PodTokensUser       = (*provider)(nil)
	_ node.PullCredentialsUser = (*provider)(nil)
	_ node.BackgroundRunner    = (*provider)(nil)
	_ node.NodeProvider        = (*provider)(nil)
	_ capability.Declarer      = (*provider)(nil)
	_ cli.NodeConfigurer       = (*provider)(nil)
	_ cli.Examiner             = (*provider)(nil)
)

// provider runs pods in ACI.
type provider struct {
	config  Config
	owner   identity.Owner
	mapping mapping
	client  *client
	groups  *groups
	cache   *poll.Cache[instance]
	started time.Time
	tls     *tls.Config
	proxy   func(*http.Request) (*url.URL, error)
	tried   tried
	listed  func() bool // whether the pods of the cluster are known; nil: they are

	followEvery time.Duration
	entrypoints *entrypoints
	monitor     *monitor
	dial        func(ctx context.Context, network, address string) (net.Conn, error)

	// Set before RunInBackground, constant afterwards.
	objects     node.PodObjects
	tokens      node.PodTokens
	credentials node.PullCredentials
}

// pace is how fast a provider asks. What is zero is as the arithmetic of groups says.
type pace struct {
	busy, rest, follow time.Duration
	seenWithin         time.Duration
	eager              bool
	http               *http.Client // nil is that of the configuration
}

// newProvider returns the provider of a configuration that is complete.
func newProvider(in cli.ProviderInput, config Config, at pace) (*provider, error) {
	through := at.http
	if through == nil {
		var err error
		if through, err = httpClient(config.Cloud.CAFile); err != nil {
			return nil, err
		}
	}
	credential, err := config.credential(through)
	if err != nil {
		return nil, err
	}
	c, err := newClient(config, credential, through)
	if err != nil {
		return nil, err
	}
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.Node.Name}
	p := &provider{
		config: config, owner: owner, client: c, mapping: mapping{config: config, owner: owner, domain: in.KubeClusterDomain},
		started: time.Now(), listed: in.Listed, followEvery: or(at.follow, followEvery),
	}
	if t, ok := through.Transport.(*http.Transport); ok { // sessions of exec go the same way
		p.tls, p.proxy = t.TLSClientConfig, t.Proxy
	}
	p.entrypoints, p.dial = &entrypoints{transport: registries(through)}, dialer()
	if p.monitor, err = newMonitor(config, credential, through); err != nil {
		return nil, err
	}
	p.groups = newGroups(c, owner, config.Requests.AtRest, func(pod identity.Pod) { p.cache.Forget(pod.UID) })
	p.groups.eager = at.eager
	p.cache = poll.New(poll.Config[instance]{
		List: p.groups.list,
		Identify: func(i instance) (poll.Identity, bool) {
			return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: value(i.group.Name)}, i.pod.UID != ""
		},
		Status: func(pod *corev1.Pod, i instance) corev1.PodStatus {
			return podstatus.Status(pod, observe(i.group, i.at))
		},
		Pod: func(id poll.Identity) *corev1.Pod {
			if in.Pods == nil {
				return nil
			}
			pod, err := in.Pods.Pods(id.Namespace).Get(id.Name)
			if err != nil {
				return nil
			}
			return pod
		},
		Had: func(namespace, name string) bool {
			if in.Pods == nil {
				return false
			}
			pod, err := in.Pods.Pods(namespace).Get(name)
			return err == nil && pod.Status.StartTime != nil
		},
		Busy: or(at.busy, busyEvery), Rest: or(at.rest, listEvery), SeenWithin: or(at.seenWithin, doubtful),
	})
	return p, nil
}

func or(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// NotifyPods implements node.PodNotifier.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.cache.Notify(notify) }

// AnswersForAllPods implements node.PodAuthority: lists of ACI are complete. What an earlier process created last may come late.
func (p *provider) AnswersForAllPods() bool { return p.cache.Complete() }

// UsePodObjects implements node.PodObjectsUser.
func (p *provider) UsePodObjects(objects node.PodObjects) { p.objects = objects }

// UsePodTokens implements node.PodTokensUser.
func (p *provider) UsePodTokens(tokens node.PodTokens) { p.tokens = tokens }

// UsePullCredentials implements node.PullCredentialsUser.
func (p *provider) UsePullCredentials(credentials node.PullCredentials) { p.credentials = credentials }

// RunInBackground implements node.BackgroundRunner. ACI is asked once the pods of the cluster are known: what its groups are follows from those.
func (p *provider) RunInBackground(ctx context.Context) error {
	if p.listed != nil && !cache.WaitForCacheSync(ctx.Done(), p.listed) {
		return nil // it ends
	}
	p.cache.Run(ctx)
	return nil
}

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }

// pingPatience is how long a Ping waits for the first list.
const pingPatience = 10 * time.Second

// Ping implements node.NodeProvider. It makes no request: the lists tell.
func (p *provider) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if err := p.cache.Wait(ctx); err != nil {
		return err
	}
	return p.cache.Away()
}

// NotifyNodeStatus implements node.NodeProvider. The node does not change.
func (p *provider) NotifyNodeStatus(context.Context, func(*corev1.Node)) {}

// ConfigureNode implements cli.NodeConfigurer.
func (p *provider) ConfigureNode(_ context.Context, n *corev1.Node) {
	nodehealth.Well(n, "ACI")
	n.Status.Capacity = p.config.Capacity.resources()
	n.Status.Allocatable = p.config.Capacity.resources()
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	// As azure-aci has it: the cloud controller of AKS makes no routes for the node, and does not delete it as a machine that is gone.
	n.Labels["kubernetes.azure.com/managed"] = "false"
}

// AttachToContainer fails: this provider does not do it.
func (p *provider) AttachToContainer(ctx context.Context, namespace, name, _ string, _ api.AttachIO) error {
	return p.lacks(ctx, namespace, name, "attach: use exec or logs")
}

// lacks refuses a request that is not there, for a pod that is.
func (p *provider) lacks(ctx context.Context, namespace, name, what string) error {
	if _, err := p.GetPod(ctx, namespace, name); err != nil {
		return err
	}
	return errdefs.InvalidInputf("pod %s/%s: this provider has no %s", namespace, name, what)
}
