// SPDX-License-Identifier: Apache-2.0

package objects

import corev1 "k8s.io/api/core/v1"

// podReferences lists the ConfigMaps and Secrets of a pod, each once: in the environment of its containers, in its
// volumes, and as image pull secrets.
func podReferences(pod *corev1.Pod) map[key]struct{} {
	refs := refs{namespace: pod.Namespace, found: map[key]struct{}{}}
	for i := range pod.Spec.ImagePullSecrets {
		refs.addSecret(&pod.Spec.ImagePullSecrets[i])
	}
	for i := range pod.Spec.InitContainers {
		refs.addEnvironment(pod.Spec.InitContainers[i].EnvFrom, pod.Spec.InitContainers[i].Env)
	}
	for i := range pod.Spec.Containers {
		refs.addEnvironment(pod.Spec.Containers[i].EnvFrom, pod.Spec.Containers[i].Env)
	}
	for i := range pod.Spec.EphemeralContainers {
		refs.addEnvironment(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env)
	}
	for i := range pod.Spec.Volumes {
		refs.addVolume(&pod.Spec.Volumes[i].VolumeSource)
	}
	return refs.found
}

type refs struct {
	namespace string
	found     map[key]struct{}
}

func (r refs) add(k *kind, name string) {
	if name != "" {
		r.found[key{kind: k, namespace: r.namespace, name: name}] = struct{}{}
	}
}

func (r refs) addSecret(ref *corev1.LocalObjectReference) {
	if ref != nil {
		r.add(secrets, ref.Name)
	}
}

func (r refs) addEnvironment(envFrom []corev1.EnvFromSource, env []corev1.EnvVar) {
	for i := range envFrom {
		if ref := envFrom[i].ConfigMapRef; ref != nil {
			r.add(configMaps, ref.Name)
		}
		if ref := envFrom[i].SecretRef; ref != nil {
			r.add(secrets, ref.Name)
		}
	}
	for i := range env {
		from := env[i].ValueFrom
		if from == nil {
			continue
		}
		if ref := from.ConfigMapKeyRef; ref != nil {
			r.add(configMaps, ref.Name)
		}
		if ref := from.SecretKeyRef; ref != nil {
			r.add(secrets, ref.Name)
		}
	}
}

func (r refs) addVolume(v *corev1.VolumeSource) {
	switch {
	case v.ConfigMap != nil:
		r.add(configMaps, v.ConfigMap.Name)
	case v.Secret != nil:
		r.add(secrets, v.Secret.SecretName)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			if ref := v.Projected.Sources[i].ConfigMap; ref != nil {
				r.add(configMaps, ref.Name)
			}
			if ref := v.Projected.Sources[i].Secret; ref != nil {
				r.add(secrets, ref.Name)
			}
		}
	case v.AzureFile != nil:
		r.add(secrets, v.AzureFile.SecretName)
	case v.CephFS != nil:
		r.addSecret(v.CephFS.SecretRef)
	case v.Cinder != nil:
		r.addSecret(v.Cinder.SecretRef)
	case v.CSI != nil:
		r.addSecret(v.CSI.NodePublishSecretRef)
	case v.FlexVolume != nil:
		r.addSecret(v.FlexVolume.SecretRef)
	case v.ISCSI != nil:
		r.addSecret(v.ISCSI.SecretRef)
	case v.RBD != nil:
		r.addSecret(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		r.addSecret(v.ScaleIO.SecretRef)
	case v.StorageOS != nil:
		r.addSecret(v.StorageOS.SecretRef)
	}
}
