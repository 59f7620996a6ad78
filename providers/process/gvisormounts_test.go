// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestMoreVolumesThanGVisorOpensAreRefused checks that a pod with too many volumes is refused with the name of
// the field. Otherwise the pod would be accepted, and its container would never start.
func TestMoreVolumesThanGVisorOpensAreRefused(t *testing.T) {
	mounts := func(n int) (all []corev1.VolumeMount) {
		for i := range n {
			all = append(all, corev1.VolumeMount{Name: "v", MountPath: fmt.Sprintf("/v%d", i)})
		}
		return all
	}
	most := corev1.Container{Name: "most", VolumeMounts: mounts(maxVolumeMounts)}
	more := corev1.Container{Name: "more", VolumeMounts: mounts(maxVolumeMounts + 1)}
	if err := mountsOfGuest(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{most}, Containers: []corev1.Container{most, most}}}); err != nil {
		t.Errorf("of containers with as many as there can be: %v", err)
	}
	p := &provider{runtime: &Runtime{oci: &ociRuntime{name: IsolationGVisor}}}
	for want, spec := range map[string]corev1.PodSpec{
		"spec.containers[1].volumeMounts: container more mounts 117 volumes":     {Containers: []corev1.Container{most, more}},
		"spec.initContainers[0].volumeMounts: container more mounts 117 volumes": {InitContainers: []corev1.Container{more}, Containers: []corev1.Container{most}},
	} {
		err := p.CreatePod(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: spec})
		if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "at most 116") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
