// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGroupOfPod(t *testing.T) {
	for name, tt := range map[string]struct {
		spec corev1.PodSpec
		want groupSpec
	}{
		"one container": {
			corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
				Name: "main", Image: "busybox", Command: []string{"sh", "-c"}, Args: []string{"date"},
				Env: []corev1.EnvVar{{Name: "COLOR", Value: "green"}, {Name: "EMPTY"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
			}}},
			groupSpec{ID: "u1", Node: "n1", Namespace: "default", Name: "web", Restart: "never", Want: []containerSpec{{
				Name: "main", Image: "busybox", Command: []string{"sh", "-c", "date"}, Env: []string{"COLOR=green", "EMPTY="}, CPU: 250, Memory: 64 << 20,
			}}},
		},
		"two containers": {
			corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyOnFailure, Containers: []corev1.Container{{Name: "a", Image: "x"}, {Name: "b", Image: "y"}}},
			groupSpec{ID: "u1", Node: "n1", Namespace: "default", Name: "web", Restart: "on-failure", Want: []containerSpec{{Name: "a", Image: "x"}, {Name: "b", Image: "y"}}},
		},
		"the default policy": {
			corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "a"}}},
			groupSpec{ID: "u1", Node: "n1", Namespace: "default", Name: "web", Restart: "always", Want: []containerSpec{{Name: "a"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}, Spec: tt.spec}
			if got := groupOf(pod); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}
