// SPDX-License-Identifier: Apache-2.0

package checkcase

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Compare fails the test if the node and the command disagree about a pod in All. The node's CreatePod and check
// must refuse the same pods, with the same text, except for refusals by the provider's declaration. Both get the
// pod after leaveOut has changed it. Containers run the image with the arguments, which are for the stand-in of
// the backend.
func Compare(t *testing.T, leaveOut func(*corev1.Pod), create func(context.Context, *corev1.Pod) error, check func(*corev1.Pod) error, args ...string) {
	t.Helper()
	for name, pod := range All() {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Args = args
		}
		leaveOut(pod)
		says, does := check(pod), create(t.Context(), pod)
		switch {
		case does != nil && strings.HasPrefix(does.Error(), "this node cannot run the pod: "): // a refusal by the declaration, which the command check asks first
		case says == nil && does == nil:
		case says == nil || does == nil || says.Error() != does.Error():
			t.Errorf("pod %s: check says %v, and the node %v", name, says, does)
		case !errdefs.IsInvalidInput(says):
			t.Errorf("pod %s: the refusal %q is not of the kind invalid-input", name, says)
		}
	}
}

// Objects has a Secret with a key for each name, and containers. Their variables from other objects have the
// value of the key.
type Objects struct{}

// ConfigMap implements node.PodObjects.
func (Objects) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"key": "value"}}, nil
}

// Secret implements node.PodObjects.
func (Objects) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"key": []byte("value")}}, nil
}

// Container implements node.PodObjects.
func (Objects) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	c := pod.Spec.Containers[i].DeepCopy()
	for i := range c.Env {
		if c.Env[i].ValueFrom != nil {
			c.Env[i] = corev1.EnvVar{Name: c.Env[i].Name, Value: "value"}
		}
	}
	return c, nil
}
