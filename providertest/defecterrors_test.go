// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// without is a provider that lacks some requests, and returns errors of a wrong kind for them.
type without struct {
	*inprocess.Provider
	attach, forward error
}

func (w without) AttachToContainer(ctx context.Context, namespace, pod, container string, attach api.AttachIO) error {
	if w.attach == nil {
		return w.Provider.AttachToContainer(ctx, namespace, pod, container, attach)
	}
	return w.attach
}

func (w without) PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error {
	if w.forward == nil {
		return w.Provider.PortForward(ctx, namespace, pod, port, stream)
	}
	return w.forward
}

func errorDefects() []defect {
	again := func(verb string, call func(context.Context, *corev1.Pod) error) func(context.Context, *corev1.Pod) error {
		return func(ctx context.Context, pod *corev1.Pod) error {
			err := call(ctx, pod)
			if err != nil {
				err = fmt.Errorf("%s pod %s/%s: %w", verb, pod.Namespace, pod.Name, err)
			}
			return err
		}
	}
	attaches := []string{"attach/stdin", "attach/output"}
	return []defect{
		{name: "a failed create that is said twice", caught: "errors/said-once", wrap: breaks(func(c *calls) { c.create = again("create", c.Provider.CreatePod) })},
		{name: "a failed update that is said twice", caught: "errors/said-once", wrap: breaks(func(c *calls) { c.update = again("update", c.Provider.UpdatePod) })},
		{name: "a failed delete that is said twice", caught: "errors/said-once", wrap: breaks(func(c *calls) { c.remove = again("delete", c.Provider.DeletePod) })},
		{name: "a change of no pod that went well", caught: "errors/update-absent", wrap: breaks(func(c *calls) {
			c.update = func(ctx context.Context, pod *corev1.Pod) error {
				if err := c.Provider.UpdatePod(ctx, pod); !errdefs.IsNotFound(err) {
					return err
				}
				return nil
			}
		})},
		{name: "no attach without a kind", caught: "errors/no-such-request", also: attaches, wrap: func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
			return without{Provider: p, attach: errors.New("the service has no attach")}
		}},
		{name: "no port-forward that looks like no pod", caught: "errors/no-port-forward", also: []string{"port-forward/both-ways", "port-forward/refused"}, wrap: func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
			return without{Provider: p, forward: errdefs.NotFound("the service has no port-forward")}
		}},
	}
}
