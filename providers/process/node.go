// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ConfigureNode sets the properties of the machine and the isolation of containers in n.
func (p *provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	p.Runtime.ConfigureNode(ctx, n)
	n.Status.NodeInfo.ContainerRuntimeVersion = "process://" + p.runtime.shownVersion()
	n.Status.NodeInfo.Architecture = runtime.GOARCH
	if n.Status.NodeInfo.OperatingSystem == "" {
		n.Status.NodeInfo.OperatingSystem = runtime.GOOS
	}
	if len(n.Status.Addresses) == 0 && p.in.InternalIP != "" {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: p.in.InternalIP}}
	}
	if p.in.DaemonPort != 0 {
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = p.in.DaemonPort
	}
	n.Status.Conditions = append(n.Status.Conditions, p.runtime.sharedNetwork(time.Now()))
	if o := p.runtime.oci; o != nil {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[VulnerabilitiesAnnotation] = o.openVulnerabilities()
	}
}
