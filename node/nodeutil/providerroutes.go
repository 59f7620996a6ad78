// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// attachProvider mounts the routes of the node's provider at mux. Each route has its own guard, inside any
// handlers that the program puts around mux.
func (n *Node) attachProvider(mux api.ServeMux) {
	p := redacted{n.provider, n.pods}
	routes := api.PodHandlerConfig{
		RunInContainer:    p.RunInContainer,
		AttachToContainer: p.AttachToContainer,
		PortForward:       p.PortForward,
		GetContainerLogs:  p.GetContainerLogs,
		GetPods:           p.GetPods,
		GetPodsFromKubernetes: func(context.Context) ([]*corev1.Pod, error) {
			return n.lister.List(labels.Everything())
		},
		GetStatsSummary:       p.GetStatsSummary,
		GetMetricsResource:    p.GetMetricsResource,
		StreamIdleTimeout:     n.cfg.StreamIdleTimeout,
		StreamCreationTimeout: n.cfg.StreamCreationTimeout,
		StreamLimits:          n.streams,
		Metrics:               nodeMetrics{n.name, n.lister, p.GetStatsSummary},
		Health:                n.health,
		GetPod: func(namespace, name string) (*corev1.Pod, error) {
			pod, err := n.lister.Pods(namespace).Get(name)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return pod, err
		},
	}
	if probes, ok := n.provider.(ProbeMetricsProvider); ok {
		routes.GetMetricsProbes = probes.GetMetricsProbes
	}
	n.addPages(&routes)
	api.AttachPodRoutes(routes, mux, true)
}
