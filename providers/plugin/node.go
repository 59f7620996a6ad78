// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// watchNode passes the plugin's node reports on.
func (p *plugin) watchNode(ctx context.Context, s *session) error {
	stream, err := s.WatchNode(ctx, &rpc.WatchNodeRequest{})
	if err != nil {
		return p.watchError(ctx, s, "reports of the node", err)
	}
	for {
		report, err := stream.Recv()
		if err != nil {
			return p.watchError(ctx, s, "reports of the node", err)
		}
		n := &corev1.Node{}
		if err := json.Unmarshal(report.GetNodeJson(), n); err != nil {
			return fmt.Errorf("decode the node that plugin %s reports: %w", p.agreed.name, err)
		}
		p.complementNode(n)
		p.mu.Lock()
		notify := p.notifyNode
		p.latestNode = n
		p.mu.Unlock()
		if notify != nil {
			notify(n)
		}
	}
}

// Ping returns an error while the plugin is not connected. Otherwise it calls the plugin, if that declares
// ABILITY_PING.
func (p *plugin) Ping(ctx context.Context) error {
	s, err := p.connectedSession()
	if err != nil {
		return err
	}
	if !p.agreed.hasAbility(rpc.Ability_ABILITY_PING) {
		return nil
	}
	ctx, cancel := s.boundContext(ctx)
	defer cancel()
	_, err = s.Ping(ctx, &rpc.PingRequest{})
	if err == nil {
		return nil
	}
	if s.ctx.Err() == nil && !wire.Unimplemented(err) {
		kind, _ := wire.Decode(ctx, err, nil)
		return kind
	}
	_, err = p.decodeError(ctx, s, err, nil)
	return err
}

// NotifyNodeStatus sets the function that gets the plugin's node reports.
func (p *plugin) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	p.mu.Lock()
	p.notifyNode = notify
	latest := p.latestNode
	p.mu.Unlock()
	if latest != nil {
		notify(latest)
	}
}

// ConfigureNode sets the resources and labels from the plugin in n.
func (p *plugin) ConfigureNode(_ context.Context, n *corev1.Node) {
	if says := p.agreed.node; says != nil {
		n.Labels, n.Annotations, n.Spec = says.Labels, says.Annotations, says.Spec
		says.Status.DeepCopyInto(&n.Status)
	}
	p.complementNode(n)
	if !p.agreed.hasAbility(rpc.Ability_ABILITY_NODE_REPORTS) {
		beReady(n, metav1.Now())
	}
}

// beReady marks n as ready, because a plugin without node reports cannot do that later. Ping detects when the
// plugin is not ready.
func beReady(n *corev1.Node, now metav1.Time) {
	ready := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the plugin is connected",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	n.Status.Conditions = append(n.Status.Conditions, ready)
}

// complementNode sets the fields that a plugin does not know: how this process serves the kubelet API.
func (p *plugin) complementNode(n *corev1.Node) {
	if len(n.Status.Addresses) == 0 && p.node.InternalIP != "" {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: p.node.InternalIP}}
	}
	if p.node.DaemonPort != 0 {
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = p.node.DaemonPort
	}
	if n.Status.NodeInfo.OperatingSystem == "" {
		n.Status.NodeInfo.OperatingSystem = p.node.OperatingSystem
	}
}
