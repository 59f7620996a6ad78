// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func TestPortIsFoundByItsName(t *testing.T) {
	c := &corev1.Container{Name: "main", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}, {Name: "admin", ContainerPort: 81}}}
	at := field.NewPath("spec", "port")
	for port, want := range map[intstr.IntOrString]int32{intstr.FromInt32(7): 7, intstr.FromString("http"): 80, intstr.FromString("admin"): 81} {
		if got, err := Port(port, c, at); got != want || err != nil {
			t.Errorf("%s: got %d, %v", port.String(), got, err)
		}
	}
	if _, err := Port(intstr.FromString("none"), c, at); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), "spec.port: ") {
		t.Errorf("a name that the container does not have: got %v", err)
	}
}
