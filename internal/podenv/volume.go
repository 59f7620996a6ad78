// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Field returns the value of a field of the pod for a file in a volume. An unknown value is an error.
func Field(pod *corev1.Pod, ref *corev1.ObjectFieldSelector, path *field.Path) (string, error) {
	value, answer, err := (&resolver{pod: pod}).fieldValue(ref, path)
	if err == nil && answer != known {
		err = fmt.Errorf("%s: field %q of the pod has no value yet", path, ref.FieldPath)
	}
	return value, err
}

// Resource returns the request or limit of the container in ref for a file in a volume, with the same rules as for variables. Allocatable is the
// default of limits.
func Resource(pod *corev1.Pod, ref *corev1.ResourceFieldSelector, allocatable func() corev1.ResourceList, path *field.Path) (string, error) {
	r := resolver{cfg: Config{NodeAllocatable: allocatable}, pod: pod}
	if ref.ContainerName == "" {
		return "", errdefs.InvalidInputf("%s: a file of a volume needs the name of a container", path.Child("containerName"))
	}
	value, answer, err := r.resourceValue(&corev1.Container{}, ref, path)
	if err == nil && answer != known {
		err = fmt.Errorf("%s: %s has no limit, and the allocatable resources of the node are unknown", path, ref.Resource)
	}
	return value, err
}
