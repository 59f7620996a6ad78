// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// Provider returns the provider nomad.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "nomad",
		New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			return newProvider(in, config)
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			config.defaults()
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

// provider runs pods at Nomad.
type provider struct {
	config   Config
	client   *client
	mapping  mapping
	store    *store
	nodeName string

	// Set before RunInBackground, constant afterwards.
	notify  func(*corev1.Pod)
	objects node.PodObjects
	tokens  node.PodTokens

	relist     chan struct{}
	synced     chan struct{} // closed with the first list
	syncedOnce sync.Once
	known      chan struct{} // closed with the first answer about clients
	knownOnce  sync.Once
	unused     map[string]uint64 // Variables that the last sweep saw without a job, and their index; only sweep looks at it

	mu         sync.Mutex
	down       error              // guarded by mu: why the stream is not there
	listError  error              // guarded by mu: why the last list failed
	place      place              // guarded by mu
	placeError error              // guarded by mu: why place is not known
	node       *corev1.Node       // guarded by mu: as it was configured
	notifyNode func(*corev1.Node) // guarded by mu
}

func newProvider(in cli.ProviderInput, config Config) (*provider, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	c, err := newClient(config)
	if err != nil {
		return nil, err
	}
	o := owner{cluster: config.ClusterName, node: in.NodeName}
	return &provider{
		config: config, client: c, mapping: mapping{config: config, owner: o}, store: newStore(o), nodeName: in.NodeName,
		notify: func(*corev1.Pod) {}, relist: make(chan struct{}, 1), synced: make(chan struct{}), known: make(chan struct{}),
		down: errors.New("no answer of Nomad yet"), placeError: errors.New("no list of the clients of Nomad yet"),
	}, nil
}

// NotifyPods implements node.PodNotifier.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.notify = notify }

// UsePodObjects implements node.PodObjectsUser.
func (p *provider) UsePodObjects(objects node.PodObjects) { p.objects = objects }

// UsePodTokens implements node.PodTokensUser.
func (p *provider) UsePodTokens(tokens node.PodTokens) { p.tokens = tokens }

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }

// AnswersForAllPods implements node.PodAuthority: lists of Nomad are complete.
func (p *provider) AnswersForAllPods() bool {
	select {
	case <-p.synced:
	default:
		return false
	}
	return p.outdated() == nil
}

// outdated says why what is known of pods may be old, nil if it is not.
func (p *provider) outdated() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.down, p.listError)
}

// syncPatience is how long a question waits for the first list.
const syncPatience = 10 * time.Second

// wait waits until what ready says, at most syncPatience.
func (p *provider) wait(ctx context.Context, ready <-chan struct{}) error {
	timer := time.NewTimer(syncPatience)
	defer timer.Stop()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	why := p.down
	if why == nil {
		why = p.placeError
	}
	return fmt.Errorf("nomad provider: %w", errors.Join(why, ctx.Err()))
}

// setDown says why there is no stream, or that there is one.
func (p *provider) setDown(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = err
}
