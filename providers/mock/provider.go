// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

//go:embed README.md
var readme string

// Provider returns the provider mock. It declares no capabilities: it runs nothing, and takes every pod.
func Provider() cli.Provider {
	return cli.Provider{Name: "mock", Readme: readme, Contract: prepareContract, New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
		config, err := LoadConfig(in.ConfigPath, in.NodeName)
		if err != nil {
			return nil, err
		}
		return New(ctx, in, config)
	}}
}

var (
	_ nodeutil.Provider = (*provider)(nil)
	_ node.PodNotifier  = (*provider)(nil)
)

// provider simulates pods. It is safe for concurrent use.
type provider struct {
	in     cli.ProviderInput
	config Config
	start  time.Time

	mu sync.Mutex
	// guarded by mu
	pods      map[types.NamespacedName]*simulated
	addresses *addresses
	agenda    agenda
	reporter  *reporter // nil: no listener
}

// New returns a provider for a configuration without a file. New fills the defaults of the configuration and
// refuses an invalid one.
func New(_ context.Context, in cli.ProviderInput, config Config) (*provider, error) {
	config, prefix, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return &provider{
		in:        in,
		config:    config,
		start:     time.Now(),
		pods:      map[types.NamespacedName]*simulated{},
		addresses: newAddresses(prefix),
	}, nil
}

// CreatePod begins the life of a pod. An existing pod stays as it is. Another pod of the same name causes an
// error until the existing pod is gone.
func (p *provider) CreatePod(_ context.Context, pod *corev1.Pod) error {
	behavior, err := p.config.Defaults.forPod(pod)
	if err != nil {
		return err
	}
	if behavior.FailCreate {
		return fmt.Errorf("it is told to fail by %s", AnnotationFailCreate)
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.findPod(pod.Namespace, pod.Name, now); s != nil && !s.life.momentAt(now).stopped {
		if s.pod.UID == pod.UID {
			return nil
		}
		return errdefs.InvalidInputf("the pod with UID %s has this name until it is deleted", s.pod.UID)
	} else if s != nil {
		p.forgetPod(s)
	}
	s := &simulated{
		pod:   pod, // a private copy
		life:  life{created: now, behavior: behavior, policy: pod.Spec.RestartPolicy},
		index: -1,
	}
	if err := p.assignAddress(s); err != nil {
		return err
	}
	p.pods[podKey(pod.Namespace, pod.Name)] = s
	p.reportAt(s, now)
	return nil
}

// UpdatePod takes over the changed spec, labels and annotations of a pod. The plan of the pod does not change
// after its creation.
func (p *provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.get(pod.Namespace, pod.Name, now)
	if err != nil {
		return err
	}
	if s.pod.UID != pod.UID {
		return notFound(pod.Namespace, pod.Name)
	}
	s.pod = pod
	p.reportAt(s, now)
	return nil
}

// DeletePod asks the containers of a pod to stop within its grace period. It returns at once; the last report of
// the pod shows how the containers ended.
func (p *provider) DeletePod(_ context.Context, pod *corev1.Pod) error {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.get(pod.Namespace, pod.Name, now)
	if err != nil {
		return err
	}
	if s.pod.UID != pod.UID {
		return notFound(pod.Namespace, pod.Name)
	}
	s.life.stopContainers(now, podspec.Grace(pod))
	if s.asked != nil {
		close(s.asked)
		s.asked = nil
	}
	p.reportAt(s, now)
	return nil
}

// AnswersForAllPods returns true: an unknown pod does not exist, because a restart leaves no pods behind.
func (p *provider) AnswersForAllPods() bool { return true }

// GetPod returns a pod with its status. The caller must not change the pod. If the pod does not exist, or its
// containers have stopped after a DeletePod, the error is of the kind not-found.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.get(namespace, name, now)
	if err != nil {
		return nil, err
	}
	return p.podAt(s, now), nil
}

// GetPodStatus returns the status of a pod, or an error of the kind not-found.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods with their status, as GetPod does.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(p.pods))
	for name := range p.pods {
		if s := p.findPod(name.Namespace, name.Name, now); s != nil {
			pods = append(pods, p.podAt(s, now))
		}
	}
	return pods, nil
}

func notFound(namespace, name string) error {
	return errdefs.NotFoundf("pod %s/%s is not here", namespace, name)
}

func podKey(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
