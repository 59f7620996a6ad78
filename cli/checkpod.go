// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// podOf returns the object as a pod, or the first pod that its controller would make; nil for other objects.
func podOf(object runtime.Object) *corev1.Pod {
	template := templateOf(object)
	if template == nil {
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	if o, err := meta.Accessor(object); err == nil {
		pod.Namespace, pod.Name = o.GetNamespace(), o.GetName()
		if _, is := object.(*corev1.Pod); !is {
			controller := true
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: object.GetObjectKind().GroupVersionKind().Kind, Name: o.GetName(), Controller: &controller}}
		}
	}
	if set, is := object.(*appsv1.StatefulSet); is {
		pod.Name += "-0"
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
		for i := range set.Spec.VolumeClaimTemplates {
			name := set.Spec.VolumeClaimTemplates[i].Name
			pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + pod.Name},
			}})
		}
	}
	pod.Namespace, pod.UID = cmp.Or(pod.Namespace, metav1.NamespaceDefault), "00000000-0000-4000-8000-000000000000"
	return pod
}

// templateOf returns the pod template of an object, which is a pod or makes pods; nil for other objects.
func templateOf(object runtime.Object) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *corev1.Pod:
		return &corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
	case *corev1.PodTemplate:
		return &o.Template
	case *corev1.ReplicationController:
		return o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	}
	return nil
}

// unread names the objects to which a pod refers, each once. Their contents may need more than the node can give
// the pod.
func unread(pod *corev1.Pod) (names []string) {
	add := func(kind, name string) {
		if text := kind + " " + name; !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, from := range list[i].EnvFrom {
				switch {
				case from.ConfigMapRef != nil:
					add("ConfigMap", from.ConfigMapRef.Name)
				case from.SecretRef != nil:
					add("Secret", from.SecretRef.Name)
				}
			}
			for _, e := range list[i].Env {
				switch from := e.ValueFrom; {
				case from == nil:
				case from.ConfigMapKeyRef != nil:
					add("ConfigMap", from.ConfigMapKeyRef.Name)
				case from.SecretKeyRef != nil:
					add("Secret", from.SecretKeyRef.Name)
				}
			}
		}
	}
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.ConfigMap != nil:
			add("ConfigMap", v.ConfigMap.Name)
		case v.Secret != nil:
			add("Secret", v.Secret.SecretName)
		case v.PersistentVolumeClaim != nil:
			add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				switch {
				case s.ConfigMap != nil:
					add("ConfigMap", s.ConfigMap.Name)
				case s.Secret != nil:
					add("Secret", s.Secret.Name)
				}
			}
		}
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		add("Secret", s.Name)
	}
	return names
}
