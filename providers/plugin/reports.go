// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// received is what a watch of pods gave.
type received struct {
	pods []*corev1.Pod
	err  error
}

// watchPods passes on the reports of the plugin. When it begins to listen, ready is called, and all pods are asked for:
// what was reported while nobody listened may be lost. The list never overtakes a report: of a pod that
// was reported meanwhile, only the report counts.
func (p *plugin) watchPods(ctx context.Context, s *session, ready func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	stream, err := s.WatchPods(ctx, &rpc.WatchPodsRequest{})
	if err == nil {
		_, err = stream.Recv() // it listens
	}
	if err != nil {
		return p.watchError(ctx, s, "reports of pods", err)
	}
	reports := make(chan received)
	wg.Go(func() {
		for {
			report, err := stream.Recv()
			var r received
			if err == nil {
				r.pods, r.err = s.decodePods(report.GetPods())
			} else {
				r.err = p.watchError(ctx, s, "reports of pods", err)
			}
			select {
			case reports <- r:
			case <-ctx.Done():
				return
			}
			if r.err != nil {
				return
			}
		}
	})
	if err := ready(); err != nil {
		return err
	}
	if err := p.resync(ctx, s, reports); err != nil {
		return err
	}
	for {
		select {
		case r := <-reports:
			if r.err != nil {
				return r.err
			}
			for _, pod := range r.pods {
				p.notify(pod)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// resync reports every pod as it is now.
func (p *plugin) resync(ctx context.Context, s *session, reports <-chan received) error {
	ctx, cancel := context.WithCancel(ctx)
	listed := make(chan received, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		pods, _, err := s.list(ctx)
		listed <- received{pods, err}
	})
	reported := map[types.UID]bool{}
	for {
		select {
		case r := <-reports:
			if r.err != nil {
				return r.err
			}
			for _, pod := range r.pods {
				reported[pod.UID] = true
				p.notify(pod)
			}
		case r := <-listed:
			if r.err != nil {
				return p.watchError(ctx, s, "list of pods", r.err)
			}
			for _, pod := range r.pods {
				if !reported[pod.UID] {
					p.notify(pod)
				}
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchError says why a stream ended that should last as long as the session.
func (p *plugin) watchError(ctx context.Context, s *session, what string, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("plugin %s ended its %s", p.agreed.name, what)
	}
	_, kind := p.decode(ctx, s, err, nil)
	return fmt.Errorf("%s: %w", what, kind)
}

// watchNode passes on what the plugin reports of the node.
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
		p.complement(n)
		p.mu.Lock()
		notify := p.notifyNode
		p.latestNode = n
		p.mu.Unlock()
		if notify != nil {
			notify(n)
		}
	}
}

// Ping fails while the plugin is not connected, and asks it if it declares so.
func (p *plugin) Ping(ctx context.Context) error {
	s, err := p.connected()
	if err != nil {
		return err
	}
	if !p.agreed.has(rpc.Ability_ABILITY_PING) {
		return nil
	}
	ctx, cancel := s.attach(ctx)
	defer cancel()
	_, err = s.Ping(ctx, &rpc.PingRequest{})
	if err == nil {
		return nil
	}
	if s.ctx.Err() == nil && !wire.Unimplemented(err) {
		kind, _ := wire.Decode(ctx, err, nil)
		return kind
	}
	_, err = p.decode(ctx, s, err, nil)
	return err
}

// NotifyNodeStatus takes what the plugin's reports of the node go to.
func (p *plugin) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	p.mu.Lock()
	p.notifyNode = notify
	latest := p.latestNode
	p.mu.Unlock()
	if latest != nil {
		notify(latest)
	}
}

// ConfigureNode writes into n what the plugin offers.
func (p *plugin) ConfigureNode(_ context.Context, n *corev1.Node) {
	if says := p.agreed.node; says != nil {
		n.Labels, n.Annotations, n.Spec = says.Labels, says.Annotations, says.Spec
		says.Status.DeepCopyInto(&n.Status)
	}
	p.complement(n)
	if !p.agreed.has(rpc.Ability_ABILITY_NODE_REPORTS) {
		beReady(n, metav1.Now())
	}
}

// beReady makes n ready: a plugin without reports of the node cannot say later that it is. Ping says when it is not.
func beReady(n *corev1.Node, now metav1.Time) {
	ready := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the plugin is connected",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	n.Status.Conditions = append(n.Status.Conditions, ready)
}

// complement fills in what a plugin cannot know: how this process serves the node.
func (p *plugin) complement(n *corev1.Node) {
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
