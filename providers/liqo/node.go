// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Labels and the taint by which Liqo and its users recognise a node.
const (
	labelType    = "liqo.io/type"
	labelCluster = "liqo.io/remote-cluster-id"
	typeNode     = "virtual-node"
	taintKey     = "virtual-node.liqo.io/not-allowed"
)

// providerTaint is the key of the default taint of nodes.
const providerTaint = "virtual-kubelet.io/provider"

// ConfigureNode sets the capacity and Liqo's labels in n. It replaces the default taint by Liqo's taint, because
// Liqo adds a toleration for its own taint to pods of offloaded namespaces. It does not change a node with no
// taint or another taint, because the user configured that.
func (p *provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[labelType], n.Labels[labelCluster] = typeNode, p.config.ForeignClusterID
	i := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == providerTaint })
	if i >= 0 {
		n.Spec.Taints[i] = corev1.Taint{Key: taintKey, Value: "true", Effect: corev1.TaintEffectNoExecute}
	}
	p.Cluster.ConfigureNode(ctx, n)
}

// Ping returns an error if the remote cluster fails, or if the remote namespaces of pods are unknown.
func (p *provider) Ping(ctx context.Context) error {
	if err := p.Cluster.Ping(ctx); err != nil {
		return err
	}
	return p.namespaces.checkMaps(ctx)
}
