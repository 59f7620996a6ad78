// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// Provider returns the provider skeleton.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "skeleton",
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			s, err := open(ctx, config)
			if err != nil {
				return nil, err
			}
			return newProvider(s, config, in.NodeName, in.Pods), nil
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			_, err := LoadConfig(path)
			return declaration(), err
		},
	}
}

// provider runs pods on a service. What it can do beyond nodeutil.Provider is found by assertion; the list of all abilities is in
// node/abilities.go of the library.
type provider struct {
	service service
	config  Config
	node    string
	pods    corev1listers.PodLister
	notify  func(*corev1.Pod)
	wake    chan struct{} // something was changed here: look now
}

var (
	_ nodeutil.Provider     = (*provider)(nil)
	_ node.PodNotifier      = (*provider)(nil)
	_ node.PodAuthority     = (*provider)(nil)
	_ node.BackgroundRunner = (*provider)(nil)
	_ node.NodeProvider     = (*provider)(nil)
	_ capability.Declarer   = (*provider)(nil)
	_ cli.NodeConfigurer    = (*provider)(nil)
)

func newProvider(s service, config Config, nodeName string, pods corev1listers.PodLister) *provider {
	return &provider{service: s, config: config, node: nodeName, pods: pods, wake: make(chan struct{}, 1)}
}

// CreatePod starts the group of a pod.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.service.Create(ctx, groupOf(pod)); err != nil {
		return err
	}
	p.changed()
	return nil
}

// UpdatePod changes nothing at the service: labels and annotations are in the API server, and other fields do not change.
func (p *provider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	groups, err := p.service.List(ctx, p.node)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.ID == pod.UID {
			return nil
		}
	}
	return errdefs.NotFoundf("skeleton has no group %s", pod.UID)
}

// DeletePod asks the group of a pod to stop. RunInBackground removes it when it has ended and that was reported.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.service.Stop(ctx, string(pod.UID), podspec.Grace(pod)); err != nil {
		return err
	}
	p.changed()
	return nil
}

// GetPods returns all pods with their statuses.
func (p *provider) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	groups, err := p.service.List(ctx, p.node)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(groups))
	for i, g := range groups {
		pods[i] = podOf(g, p.spec(g))
	}
	return pods, nil
}

// GetPod returns a pod with its status.
func (p *provider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	g, err := p.group(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return podOf(g, p.spec(g)), nil
}

// GetPodStatus returns the status of a pod.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	g, err := p.group(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &podOf(g, p.spec(g)).Status, nil
}

// AnswersForAllPods says that a pod that is not listed does not exist: List is complete, or an error.
func (*provider) AnswersForAllPods() bool { return true }

// group returns the group of a pod. While an older pod of the name stops, it is the one that was created last.
func (p *provider) group(ctx context.Context, namespace, name string) (group, error) {
	groups, err := p.service.List(ctx, p.node)
	if err != nil {
		return group{}, fmt.Errorf("look for pod %s/%s: %w", namespace, name, err)
	}
	var found *group
	for i, g := range groups {
		if g.Namespace == namespace && g.Name == name && (found == nil || g.Created.After(found.Created)) {
			found = &groups[i]
		}
	}
	if found == nil {
		return group{}, errdefs.NotFoundf("pod %s/%s is not at skeleton", namespace, name)
	}
	return *found, nil
}

// spec is the pod of a group in the API server, nil if it is not known.
func (p *provider) spec(g group) *corev1.Pod {
	pod, err := p.pods.Pods(g.Namespace).Get(g.Name)
	if err != nil {
		return nil
	}
	return pod
}

// changed lets RunInBackground look at once.
func (p *provider) changed() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
