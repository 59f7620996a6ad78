// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// unread is the value of each key of an object that was not read.
const unread = "unread"

// Unread returns the inputs of a pod whose ConfigMaps, Secrets and tokens were not read, so that the mapping of a driver can refuse the pod without a
// node; see Check of cli.Provider. Each object has the keys that the pod names, and each Secret has more, with a value that says nothing. An error is of
// the kind invalid-input, in the words of CreatePod.
func Unread(owner identity.Owner, pod *corev1.Pod, more ...string) (*Inputs, error) {
	pod = pod.DeepCopy()
	objects := unreadObjects{configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}, more: more}
	objects.add(pod)
	r := resolver{config: Config{Owner: owner, Allocatable: allocatable}, objects: objects, tokens: objects}
	return r.resolve(context.Background(), pod)
}

// allocatable stands for what the node shares, which is the default of a limit.
func allocatable() corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	return corev1.ResourceList{corev1.ResourceCPU: one, corev1.ResourceMemory: one, corev1.ResourceEphemeralStorage: one}
}

// unreadObjects are the objects that a pod names, by name, with the keys that it names.
type unreadObjects struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	more       []string // keys of each Secret
}

// add adds what a pod takes from other objects.
func (o unreadObjects) add(pod *corev1.Pod) {
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

func (o unreadObjects) configMap(name string) *corev1.ConfigMap {
	if o.configMaps[name] == nil {
		o.configMaps[name] = &corev1.ConfigMap{Data: map[string]string{}}
	}
	return o.configMaps[name]
}

func (o unreadObjects) secret(name string) *corev1.Secret {
	if o.secrets[name] == nil {
		o.secrets[name] = &corev1.Secret{Data: map[string][]byte{}}
		for _, key := range o.more {
			o.secrets[name].Data[key] = []byte(unread)
		}
	}
	return o.secrets[name]
}

// ConfigMap implements node.PodObjects.
func (o unreadObjects) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return o.configMap(name), nil
}

// Secret implements node.PodObjects.
func (o unreadObjects) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	return o.secret(name), nil
}

// Container implements node.PodObjects.
func (o unreadObjects) Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	return podenv.ResolveContainer(ctx, podenv.Config{
		Objects: namedObjects{o}, NodeAllocatable: allocatable, HostIPs: func() []corev1.HostIP { return []corev1.HostIP{{IP: "0.0.0.0"}} },
	}, pod, name)
}

// Token implements node.PodTokens.
func (o unreadObjects) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	return node.PodToken{Token: unread}, nil
}

// namedObjects are unreadObjects for podenv.
type namedObjects struct{ unreadObjects }

// ConfigMap implements podenv.Objects.
func (o namedObjects) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	return o.configMap(name), nil
}

// Secret implements podenv.Objects.
func (o namedObjects) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return o.secret(name), nil
}
