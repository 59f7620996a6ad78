// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// daemon is one node, or many.
type daemon interface {
	drainer
	DebugHandler() http.Handler
	Run(ctx context.Context) error
	WaitReady(ctx context.Context, timeout time.Duration) error
}

// newDaemon returns the node or nodes that the settings ask for.
func (o *options) newDaemon(ctx context.Context, p Provider, version string) (daemon, error) {
	opts := []nodeutil.NodeOpt{func(cfg *nodeutil.NodeConfig) error {
		cfg.Client = nil // NewNode makes it, with separate clients for heartbeats and events
		cfg.KubeconfigPath, cfg.KubeContext = o.Kubeconfig, o.KubeContext
		cfg.KubeAPIQPS, cfg.KubeAPIBurst = o.KubeAPIQPS, o.KubeAPIBurst
		cfg.InformerResyncPeriod = o.FullResync
		cfg.NumWorkers = o.PodSyncWorkers
		cfg.ShareNodes, cfg.DisableLeaseGuard = o.ShareNodes, o.NoLeaseGuard
		cfg.HTTPListenAddr = o.listenAddr()
		cfg.StreamIdleTimeout, cfg.StreamCreationTimeout = o.StreamIdleTimeout, o.StreamCreationTimeout
		cfg.MaxStreams, cfg.MaxStreamsPerUser = o.MaxStreams, o.MaxStreamsPerUser
		cfg.PodControllerConfigOpts = append(cfg.PodControllerConfigOpts, func(pods *node.PodControllerConfig) error {
			pods.FailUnsupported, pods.AcceptUnenforced = o.FailUnsupported, o.acceptedFeatures()
			pods.PodVisibilityTimeout, pods.MissingPodsQuarantine = o.PodVisibility, o.MissingPods
			return nil
		})
		o.describe(&cfg.NodeSpec, p.Name, version)
		return nil
	}}
	if o.BootstrapKubeconfig != "" {
		opts = append(opts, nodeutil.WithTLSBootstrap(o.BootstrapKubeconfig, o.CertDir))
	}
	serving, err := o.serving()
	if err != nil {
		return nil, err
	}
	opts = append(opts, serving...)
	if len(o.nodeNames) > 0 {
		return nodeutil.NewFleet(o.nodeNames, o.newProvider(ctx, p), opts...)
	}
	return nodeutil.NewNode(o.NodeName, o.newProvider(ctx, p), opts...)
}

// name returns the name of the node, or the patterns for many nodes.
func (o *options) name() string {
	if len(o.Nodes) > 0 {
		return strings.Join(o.Nodes, ",")
	}
	return o.NodeName
}

// address gives the node its addresses.
func (o *options) address(n *corev1.Node) {
	if o.NodeIP != "" {
		n.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: o.NodeIP},
			{Type: corev1.NodeHostName, Address: n.Name},
		}
	}
}

// describe writes the settings into a Node object.
func (o *options) describe(n *corev1.Node, provider, version string) {
	maps.Copy(n.Labels, o.NodeLabels)
	n.Labels[corev1.LabelOSStable] = o.OperatingSystem
	if len(o.NodeAnnotations) > 0 {
		n.Annotations = maps.Clone(n.Annotations)
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		maps.Copy(n.Annotations, o.NodeAnnotations)
	}
	n.Spec.ProviderID = o.ProviderID
	n.Status.NodeInfo.OperatingSystem = o.OperatingSystem
	n.Status.NodeInfo.KubeletVersion = version
	if !o.DisableTaint {
		// The user may have chosen the provider by its name in another project: pods written for that project tolerate a taint with that
		// name.
		value := cmp.Or(o.TaintValue, o.Provider, provider)
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: o.TaintKey, Value: value, Effect: corev1.TaintEffect(o.TaintEffect)})
	}
	n.Spec.Taints = append(n.Spec.Taints, o.taints...)
}
