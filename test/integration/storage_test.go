// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPublishedB3PodsThatRequestStorageAreScheduled: the scheduler binds a pod with the resources of the preset
// nano of bitnami/charts (bitnami/common/templates/_resources.tpl). Most of these charts have this preset by
// default.
func TestPublishedB3PodsThatRequestStorageAreScheduled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProgram("127.0.0.1", w.api.NodeCredentials(t, w.nodeName))
	pod := w.pod("nano")
	pod.Spec.NodeName = ""
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: w.nodeName}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "virtual-kubelet.io/provider", Operator: corev1.TolerationOpExists}}
	list := func(cpu, memory, storage string) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourceEphemeralStorage: resource.MustParse(storage),
		}
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list("100m", "128Mi", "50Mi"), Limits: list("150m", "192Mi", "2Gi")}
	if got := w.startPod(pod); got.Spec.NodeName != w.nodeName {
		t.Errorf("the pod runs on %q, want %s", got.Spec.NodeName, w.nodeName)
	}
}
