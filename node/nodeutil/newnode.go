// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/nilcheck"
	"github.com/virtual-kubelet/virtual-kubelet/internal/replicas"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// NewNode returns the node called name, with a provider from newProvider. It applies opts in order to the defaults of NodeConfig, and
// checks and connects everything; it starts no goroutine and sends no request.
func NewNode(name string, newProvider NewProviderFunc, opts ...NodeOpt) (*Node, error) {
	if name == "" {
		return nil, errors.New("make node: name is empty")
	}
	n, err := newNode(name, newProvider, opts)
	if err != nil {
		return nil, fmt.Errorf("make node %s: %w", name, err)
	}
	return n, nil
}

func newNode(name string, newProvider NewProviderFunc, opts []NodeOpt) (*Node, error) {
	if newProvider == nil {
		return nil, errNoProviderFunc
	}
	cfg, fromEnv := defaultConfig(name)
	if err := configure(&cfg, opts); err != nil {
		return nil, err
	}
	if cfg.ShareNodes != "" {
		return nil, errors.New("ShareNodes is set, but only the nodes of a fleet are shared")
	}
	b, err := newBase(name, cfg, fromEnv)
	if err != nil {
		return nil, err
	}
	pods := newPodInformer(b.clients.watches, name, b.common.InformerResyncPeriod)
	b.informers = append(b.informers, pods.Informer())
	n, err := b.newNode(name, b.common, pods, b.clients.nodes, nil, newProvider)
	if err != nil {
		return nil, err
	}
	n.health = n.isWell
	if cfg.mux != nil {
		n.attachProvider(authMux{cfg.mux})
	}
	return n, nil
}

// newNode returns a node with the shared parts b and the configuration cfg. pods is the informer of its pods. group is nil if no other
// process shares the node.
func (b *base) newNode(name string, cfg NodeConfig, pods corev1informers.PodInformer, nodes corev1client.NodeInterface, group *replicas.Group, newProvider NewProviderFunc) (*Node, error) {
	n := &Node{base: b, name: name, cfg: cfg, lister: pods.Lister(), life: newLifetime()}
	if _, err := pods.Informer().AddEventHandler(newPodStarts()); err != nil {
		return nil, fmt.Errorf("follow the pods of the node: %w", err)
	}
	provider, nodeProvider, err := newProvider(ProviderConfig{
		Pods:       handedPods{n.lister, &n.pods},
		ConfigMaps: b.objects.ConfigMaps().Lister(),
		Secrets:    b.objects.Secrets().Lister(),
		Services:   b.services.Lister(),
		Listed:     func() bool { return pods.Informer().HasSynced() && b.services.Informer().HasSynced() },
		Node:       &n.cfg.NodeSpec,
		Recorder:   redactedEvents{n.recorder("kubelet"), &n.pods},
		APIServer:  apiServerOf(b.clients.main),
	})
	if err != nil {
		return nil, fmt.Errorf("make provider: %w", err)
	}
	switch {
	case provider == nil:
		return nil, errors.New("make provider: it is nil, and so is the error")
	case nilcheck.Is(provider):
		return nil, fmt.Errorf("make provider: it is a nil %T, and the error is nil", provider)
	case nodeProvider == nil:
		n.naive = node.NewNaiveNodeProvider()
		nodeProvider = n.naive
	case nilcheck.Is(nodeProvider):
		return nil, fmt.Errorf("make node provider: it is a nil %T; return a plain nil for a node that is always healthy", nodeProvider)
	}
	completeNode(&n.cfg.NodeSpec) // the provider may have written its own status
	if b.server != nil {
		declareStreams(&n.cfg)
	}
	if n.cfg.NodeSpec.Name != name {
		return nil, fmt.Errorf("the node is named %q in its spec; pods for it would never be seen", n.cfg.NodeSpec.Name)
	}
	n.provider = provider
	n.registered = registrationOf(&n.cfg.NodeSpec)

	capacity := &capacityWatch{NodeProvider: nodeProvider}
	if b.serving != nil {
		capacity.also = b.serving.observe
	}
	capacity.observe(&n.cfg.NodeSpec)
	podConfig := node.PodControllerConfig{
		PodClient:                 b.clients.main.CoreV1(),
		PodInformer:               pods,
		EventRecorder:             n.recorder(n.name + "/pod-controller"),
		Provider:                  provider,
		ConfigMapInformer:         b.objects.ConfigMaps(),
		SecretInformer:            b.objects.Secrets(),
		ServiceInformer:           b.services,
		SkipDownwardAPIResolution: n.cfg.SkipDownwardAPIResolution,
		NodeName:                  name,
		OperatingSystem:           n.cfg.NodeSpec.Status.NodeInfo.OperatingSystem,
		NodeAllocatable:           capacity.allocatable,
		SetNodeCondition:          func(c corev1.NodeCondition) { n.node.SetCondition(c) }, // called during Run, when n.node is set
		NodeAddresses:             capacity.addresses,
	}
	for _, opt := range n.cfg.PodControllerConfigOpts {
		if err := opt(&podConfig); err != nil {
			return nil, fmt.Errorf("apply pod controller option: %w", err)
		}
	}
	if n.pods, err = node.NewPodController(podConfig); err != nil {
		return nil, fmt.Errorf("make pod controller: %w", err)
	}
	capacity.redact = func(err error) error { return n.pods.RedactError("", "", err) }

	nodeOpts := []node.NodeControllerOpt{
		node.WithNodeEnableLeaseV1WithRenewInterval(b.clients.leases, node.DefaultLeaseDuration, cfg.renewInterval()),
		node.WithNodeEventRecorder(n.recorder("kubelet")),
		node.WithNodeHealthyHook(n.pods.Kick), // retry pods that failed while the backend was down
	}
	if !n.cfg.DisableLeaseGuard {
		nodeOpts = append(nodeOpts, node.WithNodeLeaseGuard(n.pods))
	}
	if group != nil {
		nodeOpts = append(nodeOpts, node.WithNodeLeaseGroup(group))
	}
	if h := n.cfg.NodeStatusUpdateErrorHandler; h != nil {
		nodeOpts = append(nodeOpts, node.WithNodeStatusUpdateErrorHandler(h))
	}
	if n.node, err = node.NewNodeController(capacity, &n.cfg.NodeSpec, nodes, nodeOpts...); err != nil {
		return nil, fmt.Errorf("make node controller: %w", err)
	}
	n.attachNotices(podConfig.EventRecorder)
	return n, nil
}

// attachNotices shows the state of the node's certificates in the Node object.
func (n *Node) attachNotices(events record.EventRecorder) {
	if n.serving != nil {
		n.serving.notices.attach(n.name, n.node, events)
	}
	if n.clientCert != nil {
		n.clientCert.notices.attach(n.name, n.node, events)
	}
}
