// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// Notifying is a provider that reports changes.
type Notifying interface {
	nodeutil.Provider
	node.PodNotifier
}

// Provider returns p with the points around it.
func (p *Plan) Provider(inner Notifying) Notifying { return &provider{Notifying: inner, plan: p} }

type provider struct {
	Notifying
	plan *Plan
}

func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) (err error) {
	p.plan.callBetween("CreatePod", func() { err = p.Notifying.CreatePod(ctx, pod) })
	return err
}

func (p *provider) UpdatePod(ctx context.Context, pod *corev1.Pod) (err error) {
	p.plan.callBetween("UpdatePod", func() { err = p.Notifying.UpdatePod(ctx, pod) })
	return err
}

func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) (err error) {
	p.plan.callBetween("DeletePod", func() { err = p.Notifying.DeletePod(ctx, pod) })
	return err
}

func (p *provider) GetPod(ctx context.Context, namespace, name string) (pod *corev1.Pod, err error) {
	p.plan.callBetween("GetPod", func() { pod, err = p.Notifying.GetPod(ctx, namespace, name) })
	return pod, err
}

func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (status *corev1.PodStatus, err error) {
	p.plan.callBetween("GetPodStatus", func() { status, err = p.Notifying.GetPodStatus(ctx, namespace, name) })
	return status, err
}

func (p *provider) GetPods(ctx context.Context) (pods []*corev1.Pod, err error) {
	p.plan.callBetween("GetPods", func() { pods, err = p.Notifying.GetPods(ctx) })
	return pods, err
}

func (p *provider) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	p.Notifying.NotifyPods(ctx, func(pod *corev1.Pod) {
		p.plan.callBetween("report", func() { notify(pod) })
	})
}
