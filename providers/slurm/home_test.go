// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// provider is a service provider together with its driver. A method of both is the provider's.
type provider struct {
	*service.Provider[*instance]
	*driver
}

func (p *provider) Ping(ctx context.Context) error { return p.Provider.Ping(ctx) }

func (p *provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	p.Provider.ConfigureNode(ctx, n)
}

func (p *provider) NotifyNodeStatus(ctx context.Context, notify func(*corev1.Node)) {
	p.Provider.NotifyNodeStatus(ctx, notify)
}

// home wraps a driver into a provider without background work.
func home(d *driver) *provider {
	if d.in.Node == nil {
		d.in.Node = &corev1.Node{}
	}
	d.wake, d.telling = make(chan struct{}, 1), make(chan struct{}, 1)
	d.serve()
	return &provider{d.provider, d}
}

// listed is like home, with a first list done.
func listed(t *testing.T, d *driver) *provider {
	t.Helper()
	p := home(d)
	p.Cache().TakeAll(t.Context(), time.Now(), d.instances(func(*tracked) bool { return true }))
	return p
}

// now returns the status of a pod as it would be reported.
func (p *provider) now(t *testing.T, of *tracked) corev1.PodStatus {
	t.Helper()
	p.report(t.Context())
	pod, _, _ := p.Cache().Get(of.id.UID)
	if pod == nil {
		t.Fatalf("pod %s is not known", of.id.UID)
	}
	return pod.Status
}
