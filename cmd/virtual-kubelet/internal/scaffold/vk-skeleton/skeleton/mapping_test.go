// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

func TestGroupOfPod(t *testing.T) {
	tags := map[string]string{"vk-uid": "u1"}
	for name, tt := range map[string]struct {
		spec corev1.PodSpec
		want groupSpec
	}{
		"one container": {
			corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
				Name: "main", Image: "busybox", Command: []string{"sh", "-c"}, Args: []string{"date"},
				Env: []corev1.EnvVar{{Name: "COLOR", Value: "green"}, {Name: "EMPTY"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
			}}},
			groupSpec{Tags: tags, Restart: "never", Containers: []containerSpec{{
				Name: "main", Image: "busybox", Command: []string{"sh", "-c", "date"}, Env: []string{"COLOR=green", "EMPTY="}, MilliCPU: 250, Memory: 64 << 20,
			}}},
		},
		"two containers": {
			corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure, Containers: []corev1.Container{{Name: "a", Image: "x"}, {Name: "b", Image: "y"}}},
			groupSpec{Tags: tags, Restart: "on-failure", Containers: []containerSpec{{Name: "a", Image: "x"}, {Name: "b", Image: "y"}}},
		},
		"the default policy": {
			corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}},
			groupSpec{Tags: tags, Restart: "always", Containers: []containerSpec{{Name: "a"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}, Spec: tt.spec}
			in := &service.Inputs{Pod: pod, Tags: tags, Containers: map[string]*corev1.Container{}}
			for i := range pod.Spec.Containers {
				in.Containers[pod.Spec.Containers[i].Name] = &pod.Spec.Containers[i] // the kit resolves environments
			}
			if got, err := groupOf(in); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}
