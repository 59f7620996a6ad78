// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

var _ node.PodObjects = (*Objects)(nil)

// Objects are the files of the groups of a fleet, in the form in which a runner reads files of pods. The zero
// value has none.
type Objects struct {
	mu      sync.Mutex
	secrets map[string]map[string]*corev1.Secret // guarded by mu; keyed by group and name
}

func (o *Objects) set(group, name string, files map[string][]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.secrets == nil {
		o.secrets = map[string]map[string]*corev1.Secret{}
	}
	if o.secrets[group] == nil {
		o.secrets[group] = map[string]*corev1.Secret{}
	}
	o.secrets[group][name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: files}
}

func (o *Objects) dropSecrets(group string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.secrets, group)
}

// Secret implements node.PodObjects.
func (o *Objects) Secret(_ context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.secrets[pod.Name][name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

// ConfigMap implements node.PodObjects. A group has no ConfigMaps: services take files with their content.
func (o *Objects) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
}

// Container implements node.PodObjects: the environment of a group has values only.
func (o *Objects) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return list[i].DeepCopy(), nil
			}
		}
	}
	return nil, errdefs.NotFoundf("the group has no container %s", name)
}
