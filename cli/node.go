// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// newNode returns the node that the settings ask for.
func (o *options) newNode(ctx context.Context, p Provider, version string) (*nodeutil.Node, error) {
	opts := []nodeutil.NodeOpt{func(cfg *nodeutil.NodeConfig) error {
		cfg.Client = nil // NewNode makes it, with those for heartbeats and events
		cfg.KubeconfigPath = o.Kubeconfig
		cfg.KubeAPIQPS, cfg.KubeAPIBurst = o.KubeAPIQPS, o.KubeAPIBurst
		cfg.InformerResyncPeriod = o.FullResync
		cfg.NumWorkers = o.PodSyncWorkers
		cfg.DisableLeaseGuard = o.NoLeaseGuard
		cfg.HTTPListenAddr = o.listenAddr()
		cfg.StreamIdleTimeout, cfg.StreamCreationTimeout = o.StreamIdleTimeout, o.StreamCreationTimeout
		o.describe(&cfg.NodeSpec, p.Name, version)
		return nil
	}}
	serving, err := o.serving()
	if err != nil {
		return nil, err
	}
	return nodeutil.NewNode(o.NodeName, o.newProvider(ctx, p), append(opts, serving...)...)
}

// describe writes the settings into the Node object.
func (o *options) describe(n *corev1.Node, provider, version string) {
	n.Labels[corev1.LabelOSStable] = o.OperatingSystem
	n.Status.NodeInfo.OperatingSystem = o.OperatingSystem
	n.Status.NodeInfo.KubeletVersion = version
	if o.NodeIP != "" {
		n.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: o.NodeIP},
			{Type: corev1.NodeHostName, Address: o.NodeName},
		}
	}
	if !o.DisableTaint {
		value := o.TaintValue
		if value == "" {
			value = provider
		}
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: o.TaintKey, Value: value, Effect: corev1.TaintEffect(o.TaintEffect)})
	}
}
