// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// unread is the placeholder value of each key of an unread object.
const unread = "unread"

// Unread stands for the ConfigMaps, Secrets and tokens of a pod without reading them: each object has the keys
// that the pod names, with a placeholder value. It is a podinputs.PodObjects and a podinputs.PodTokens.
type Unread struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	more       []string // keys of each Secret
}

// NewUnread returns the unread objects of a pod. Each Secret also has the keys in more.
func NewUnread(pod *corev1.Pod, more ...string) Unread {
	o := Unread{configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}, more: more}
	o.add(pod)
	return o
}

// UnreadAllocatable stands for the allocatable resources of a node, the default of a limit.
func UnreadAllocatable() corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	return corev1.ResourceList{corev1.ResourceCPU: one, corev1.ResourceMemory: one, corev1.ResourceEphemeralStorage: one}
}

// add adds the objects that a pod names.
func (o Unread) add(pod *corev1.Pod) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, e := range list[i].Env {
				switch from := e.ValueFrom; {
				case from == nil:
				case from.ConfigMapKeyRef != nil:
					o.configMap(from.ConfigMapKeyRef.Name).Data[from.ConfigMapKeyRef.Key] = unread
				case from.SecretKeyRef != nil:
					o.secret(from.SecretKeyRef.Name).Data[from.SecretKeyRef.Key] = []byte(unread)
				}
			}
		}
	}
	volume := func(m *corev1.ConfigMapVolumeSource, s *corev1.SecretVolumeSource) {
		if m != nil {
			for _, item := range m.Items {
				o.configMap(m.Name).Data[item.Key] = unread
			}
		}
		if s != nil {
			for _, item := range s.Items {
				o.secret(s.SecretName).Data[item.Key] = []byte(unread)
			}
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		volume(v.ConfigMap, v.Secret)
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				volume(&corev1.ConfigMapVolumeSource{LocalObjectReference: s.ConfigMap.LocalObjectReference, Items: s.ConfigMap.Items}, nil)
			}
			if s.Secret != nil {
				volume(nil, &corev1.SecretVolumeSource{SecretName: s.Secret.Name, Items: s.Secret.Items})
			}
		}
	}
}

func (o Unread) configMap(name string) *corev1.ConfigMap {
	if o.configMaps[name] == nil {
		o.configMaps[name] = &corev1.ConfigMap{Data: map[string]string{}}
	}
	return o.configMaps[name]
}

func (o Unread) secret(name string) *corev1.Secret {
	if o.secrets[name] == nil {
		o.secrets[name] = &corev1.Secret{Data: map[string][]byte{}}
		for _, key := range o.more {
			o.secrets[name].Data[key] = []byte(unread)
		}
	}
	return o.secrets[name]
}

// ConfigMap implements podinputs.PodObjects.
func (o Unread) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return o.configMap(name), nil
}

// Secret implements podinputs.PodObjects.
func (o Unread) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	return o.secret(name), nil
}

// Container implements podinputs.PodObjects.
func (o Unread) Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	return podenv.ResolveContainer(ctx, podenv.Config{
		Objects: namedObjects{o}, NodeAllocatable: UnreadAllocatable, HostIPs: func() []corev1.HostIP { return []corev1.HostIP{{IP: "0.0.0.0"}} },
	}, pod, name)
}

// Token implements podinputs.PodTokens.
func (o Unread) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (podinputs.PodToken, error) {
	return podinputs.PodToken{Token: unread}, nil
}

// namedObjects implements podenv.Objects with Unread.
type namedObjects struct{ Unread }

// ConfigMap implements podenv.Objects.
func (o namedObjects) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	return o.configMap(name), nil
}

// Secret implements podenv.Objects.
func (o namedObjects) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return o.secret(name), nil
}
