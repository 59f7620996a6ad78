// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// Provider returns the provider interlink.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "interlink",
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			p, err := newProvider(in, config)
			if err != nil {
				return nil, err
			}
			for _, warning := range p.config.warnings {
				log.G(ctx).Warn("interlink provider: " + warning)
			}
			return p, nil
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
	_ node.PodObjectsUser   = (*provider)(nil)
	_ node.PodTokensUser    = (*provider)(nil)
	_ node.BackgroundRunner = (*provider)(nil)
	_ node.NodeProvider     = (*provider)(nil)
	_ capability.Declarer   = (*provider)(nil)
	_ cli.NodeConfigurer    = (*provider)(nil)
	_ cli.Examiner          = (*provider)(nil)
)

// provider runs pods behind an interLink API server.
type provider struct {
	config  Config
	in      cli.ProviderInput
	client  *client
	tracker *tracker
	objects node.PodObjects
	tokens  node.PodTokens
	place   place
	doubts  doubts

	mu     sync.Mutex
	synced bool // guarded by mu; the server was asked for the pods that the cluster has

	begin sync.Once
	began time.Time // of the first question about a pod
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
	p := &provider{config: config, in: in, client: c, tracker: newTracker(c, time.Duration(config.StatusInterval))}
	p.tracker.atHome = p.atHome
	return p, nil
}

// UsePodObjects implements node.PodObjectsUser: what it reads of Secrets is kept out of events and errors.
func (p *provider) UsePodObjects(objects node.PodObjects) { p.objects = objects }

// UsePodTokens implements node.PodTokensUser.
func (p *provider) UsePodTokens(tokens node.PodTokens) { p.tokens = tokens }

// NotifyPods implements node.PodNotifier.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.tracker.notify = notify }

// RunInBackground implements node.BackgroundRunner.
func (p *provider) RunInBackground(ctx context.Context) error {
	p.tracker.run(ctx)
	p.client.http.CloseIdleConnections()
	return nil
}

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }

// CreatePod submits a pod. One that the server has already is taken as it is: the answer to an earlier create may have been lost.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.create(ctx, pod); err != nil {
		return fmt.Errorf("create pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// afterDoubt is how long a create waits whose predecessor may still be under way at the server.
const afterDoubt = 5 * time.Second

func (p *provider) create(ctx context.Context, pod *corev1.Pod) error {
	if p.tracker.get(pod.UID) != nil {
		return nil
	}
	if said, err := p.look(ctx, pod); err != nil || said != nil {
		if err == nil {
			p.doubts.clear(pod.UID)
			p.tracker.add(pod, *said, true)
		}
		return err
	}
	if err := p.early(pod); err != nil {
		return err
	}
	if err := p.doubts.check(pod.UID); err != nil {
		return err
	}
	if err := offloaded(pod); err != nil {
		return err
	}
	n, err := p.gather(ctx, pod)
	if err != nil {
		return err
	}
	made, err := p.client.create(ctx, request(pod, n, p.config))
	switch {
	case err != nil && doubtful(err): // it may be there: the next tries look, and submit when it has had the time to be seen
		p.doubts.add(pod.UID, err)
		return errdefs.RetryAfter(err, afterDoubt)
	case err != nil:
		return err
	}
	p.doubts.clear(pod.UID)
	p.tracker.add(pod, wire.PodStatus{UID: string(pod.UID), JobID: words(made.JobID)}, false)
	return nil
}

// UpdatePod takes labels and annotations down. The protocol has no way to change a job.
func (p *provider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.sync(ctx); err != nil {
		return fmt.Errorf("update pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	have := p.tracker.get(pod.UID)
	if have == nil {
		return errdefs.NotFoundf("update pod %s/%s: the interLink API server has no pod with the UID %s", pod.Namespace, pod.Name, pod.UID)
	}
	p.tracker.update(pod)
	return sameImages(have, pod)
}

// sameImages refuses another image in a container of any kind.
func sameImages(have, pod *corev1.Pod) error {
	runs := slices.Concat(have.Spec.InitContainers, have.Spec.Containers)
	for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if i < len(runs) && runs[i].Image != c.Image {
			return errdefs.InvalidInputf("update pod %s/%s: container %s: the InterLink protocol cannot change the image of a job", pod.Namespace, pod.Name, c.Name)
		}
	}
	return nil
}
