// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Port returns the number of a port of a container. port may be a name; for an unknown name, the error is of the kind invalid-input. at is
// the field.
func Port(port intstr.IntOrString, c *corev1.Container, at *field.Path) (int32, error) {
	if port.Type == intstr.Int {
		return port.IntVal, nil
	}
	for i := range c.Ports {
		if c.Ports[i].Name == port.StrVal {
			return c.Ports[i].ContainerPort, nil
		}
	}
	return 0, errdefs.InvalidInputf("%s: container %s has no port %q", at, c.Name, port.StrVal)
}
