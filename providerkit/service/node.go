// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/nodehealth"
)

// Ping implements node.NodeProvider. It makes no request unless the driver is a Pinger, because the lists show the state of the service.
func (p *Provider[T]) Ping(ctx context.Context) error {
	if pinger, ok := p.driver.(Pinger); ok {
		return pinger.Ping(ctx)
	}
	if err := p.wait(ctx); err != nil {
		return err
	}
	return p.cache.Away()
}

// NotifyNodeStatus implements node.NodeProvider. The node does not change unless the driver is a NodeReporter, or calls Offer.
func (p *Provider[T]) NotifyNodeStatus(ctx context.Context, report func(*corev1.Node)) {
	p.offers.mu.Lock()
	p.offers.report, p.offers.node = report, p.offers.node.DeepCopy() // the node is complete by now: its port and its declared features come after ConfigureNode
	p.offers.tell()
	p.offers.mu.Unlock()
	if r, ok := p.driver.(NodeReporter); ok {
		r.NotifyNodeStatus(ctx, report)
	}
}

// GetMetricsProbes implements nodeutil.ProbeMetricsProvider. Without a Prober there are none.
func (p *Provider[T]) GetMetricsProbes(ctx context.Context) ([]*dto.MetricFamily, error) {
	if p.prober == nil {
		return nil, nil
	}
	return p.prober.asks.Metrics(ctx)
}

// ConfigureNode implements cli.NodeConfigurer.
func (p *Provider[T]) ConfigureNode(ctx context.Context, n *corev1.Node) {
	nodehealth.Well(n, p.config.Service) // Ping reports an unhealthy service
	if p.config.Capacity != nil {
		n.Status.Capacity, n.Status.Allocatable = p.config.Capacity.DeepCopy(), p.config.Capacity.DeepCopy()
	}
	if p.config.Runtime != "" {
		n.Status.NodeInfo.ContainerRuntimeVersion = p.config.Runtime
	}
	if c, ok := p.driver.(NodeConfigurer); ok {
		c.ConfigureNode(ctx, n)
	}
	p.offers.mu.Lock()
	defer p.offers.mu.Unlock()
	p.offers.node = n
}

// Examine implements cli.Examiner.
func (p *Provider[T]) Examine(ctx context.Context) error {
	if e, ok := p.driver.(Examiner); ok {
		return e.Examine(ctx)
	}
	if pinger, ok := p.driver.(Pinger); ok {
		return pinger.Ping(ctx)
	}
	_, err := p.driver.List(ctx)
	return err
}
