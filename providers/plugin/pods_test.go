// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The message to stop a pod that is too large to be sent names its containers, for a plugin that stops them one
// by one, and omits the large parts.
func TestStopOfALargePod(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	seconds := int64(7)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u", Annotations: map[string]string{"a": huge}, DeletionGracePeriodSeconds: &seconds},
		Spec: corev1.PodSpec{
			NodeName: "n", InitContainers: []corev1.Container{{Name: "init", Args: []string{huge}}},
			Containers: []corev1.Container{{Name: "main", Image: "img", Env: []corev1.EnvVar{{Name: "E", Value: huge}}}},
		},
	}
	got := stopOf(pod)
	if got.UID != "u" || got.Namespace != "d" || got.Name != "p" || *got.DeletionGracePeriodSeconds != 7 || got.Spec.NodeName != "n" {
		t.Errorf("got %v, which does not say which pod stops and how", got)
	}
	if got.Spec.InitContainers[0].Name != "init" || got.Spec.Containers[0].Name != "main" || got.Spec.Containers[0].Image != "img" {
		t.Errorf("got containers %v and %v", got.Spec.InitContainers, got.Spec.Containers)
	}
	if n := got.Size(); n > 1000 {
		t.Errorf("it takes %d bytes", n)
	}
}
