// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

//go:embed README.md
var readme string

// Provider returns the provider named huaweicci.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "huaweicci", Aliases: []string{"huawei"},
		Readme: readme,
		New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			if config, err = config.completeConfig(); err != nil {
				return nil, err
			}
			access, err := config.clientConfig()
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
			config, _ = config.completeConfig() // the node reports missing settings
			return remotecluster.Config{Namespace: config.Namespace, Adjust: config.adjustPod}.Check, err
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
)

// provider runs pods in CCI. It does not implement node.PodAuthority, for the reason given in remotecluster.
type provider struct {
	*remotecluster.Cluster
	config Config
	place  place

	tried   chan struct{} // closed after the first attempt to create the namespace and its network
	gone    chan struct{} // receives a value when the namespace or its network is missing
	mu      sync.Mutex
	makeErr error // guarded by mu; why the namespace or its network could not be created
}

// newProvider returns a provider for a complete configuration.
func newProvider(in cli.ProviderInput, config Config, access *rest.Config) (*provider, error) {
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("huaweicci provider: %w", err)
	}
	p := &provider{config: config, place: place{config, client}, tried: make(chan struct{}), gone: make(chan struct{}, 1)}
	p.Cluster, err = remotecluster.New(remotecluster.Config{
		Home: remotecluster.Home{Cluster: config.ClusterName, Node: in.Node.Name}, REST: access, Namespace: config.Namespace,
		Annotations: config.showsAnnotation, Adjust: config.adjustPod, Answers: p.place.checkNetworks, Capacity: config.Capacity, Pods: in.Pods, Services: in.Services, Listed: in.Listed,
		Claim: true, RefreshEvery: config.refreshEvery,
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// makeEvery is the interval of attempts to create the namespace and its network.
const makeEvery = 10 * time.Second

// makeTimeout is the timeout of one attempt.
const makeTimeout = time.Minute

// RunInBackground implements node.BackgroundRunner.
func (p *provider) RunInBackground(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !p.untilMade(ctx, sync.OnceFunc(func() { close(p.tried) })) {
		return nil
	}
	wg.Go(func() {
		for {
			select {
			case <-p.gone:
				p.untilMade(ctx, func() {})
			case <-ctx.Done():
				return
			}
		}
	})
	return p.Cluster.RunInBackground(ctx)
}

// untilMade retries makeNamespace until it succeeds, and calls tried after each attempt. It returns false if ctx
// ends first.
func (p *provider) untilMade(ctx context.Context, tried func()) bool {
	ticker := time.NewTicker(makeEvery)
	defer ticker.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, makeTimeout)
		err := p.place.makeNamespace(bounded)
		cancel()
		p.mu.Lock()
		p.makeErr = err
		p.mu.Unlock()
		tried()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("Pods cannot run in CCI yet")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}

// unsupportedError returns the error for a request that CCI does not support, or not-found if the pod does not
// exist.
func (p *provider) unsupportedError(ctx context.Context, namespace, name, what string) error {
	if _, err := p.GetPod(ctx, namespace, name); err != nil {
		return err
	}
	return errdefs.InvalidInputf("pod %s/%s: CCI has no %s", namespace, name, what)
}

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }
