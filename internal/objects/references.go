// SPDX-License-Identifier: Apache-2.0

package objects

import corev1 "k8s.io/api/core/v1"

// references lists the ConfigMaps and Secrets of a pod, each once: in the environment of its containers, in its
// volumes, and as image pull secrets.
func references(pod *corev1.Pod) map[key]struct{} {
	refs := refs{namespace: pod.Namespace, found: map[key]struct{}{}}
	for i := range pod.Spec.ImagePullSecrets {
		refs.secret(&pod.Spec.ImagePullSecrets[i])
	}
	for i := range pod.Spec.InitContainers {
		refs.environment(pod.Spec.InitContainers[i].EnvFrom, pod.Spec.InitContainers[i].Env)
	}
	for i := range pod.Spec.Containers {
		refs.environment(pod.Spec.Containers[i].EnvFrom, pod.Spec.Containers[i].Env)
	}
	for i := range pod.Spec.EphemeralContainers {
		refs.environment(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env)
	}
	for i := range pod.Spec.Volumes {
		refs.volume(&pod.Spec.Volumes[i].VolumeSource)
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

func (r refs) secret(ref *corev1.LocalObjectReference) {
	if ref != nil {
		r.add(secrets, ref.Name)
	}
}

func (r refs) environment(envFrom []corev1.EnvFromSource, env []corev1.EnvVar) {
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

func (r refs) volume(v *corev1.VolumeSource) {
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
		r.secret(v.CephFS.SecretRef)
	case v.Cinder != nil:
		r.secret(v.Cinder.SecretRef)
	case v.CSI != nil:
		r.secret(v.CSI.NodePublishSecretRef)
	case v.FlexVolume != nil:
		r.secret(v.FlexVolume.SecretRef)
	case v.ISCSI != nil:
		r.secret(v.ISCSI.SecretRef)
	case v.RBD != nil:
		r.secret(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		r.secret(v.ScaleIO.SecretRef)
	case v.StorageOS != nil:
		r.secret(v.StorageOS.SecretRef)
	}
}
