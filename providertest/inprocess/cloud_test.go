// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestStoppedContainersAreNoInstance: a pod whose containers have all stopped has no instance. The last
// container ends a moment before the pod is over, and an observer of the containers already sees no pod.
func TestStoppedContainersAreNoInstance(t *testing.T) {
	done, open := make(chan struct{}), make(chan struct{})
	close(done)
	for name, tt := range map[string]struct {
		asked bool
		runs  []*run
		want  int
	}{
		"it stops":                          {true, []*run{{done: done}, {done: open}}, 1},
		"it has stopped":                    {true, []*run{{done: done}, {done: done}}, 0},
		"a container was not started":       {true, []*run{{done: done}, nil}, 1},
		"it was not asked to, and restarts": {false, []*run{{done: done}, {done: done}}, 1},
	} {
		spec := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}
		p := &pod{uid: "a", spec: spec, asked: tt.asked}
		for _, r := range tt.runs {
			p.containers = append(p.containers, &container{spec: &corev1.Container{Name: "c"}, run: r})
		}
		if got := (&Cloud{pods: []*pod{p}}).Instances("a"); got != tt.want {
			t.Errorf("%s: %d instances, want %d", name, got, tt.want)
		}
	}
}
