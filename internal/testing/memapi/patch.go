// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patchStatus changes a pod by the status subresource: spec and the rest of the
// metadata stay.
func (a *API) patchStatus(key string, body []byte) (*corev1.Pod, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.pods[key]
	if old == nil {
		return nil, apierrors.NewNotFound(resource, key)
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, body, corev1.Pod{})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var patched corev1.Pod
	if err := json.Unmarshal(after, &patched); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	pod := old.DeepCopy()
	pod.Status = patched.Status
	pod.Labels, pod.Annotations = maps.Clone(patched.Labels), maps.Clone(patched.Annotations)
	matchIPs(&pod.Status)
	if refused := invalid(old, &patched); len(refused) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), old.Name, refused)
	}
	if equality.Semantic.DeepEqual(pod, old) {
		return pod, nil // as the API server, which writes nothing then
	}
	a.settle(Client, old, pod)
	return pod.DeepCopy(), nil
}

// matchIPs keeps podIPs in step with podIP, which counts when they differ.
func matchIPs(s *corev1.PodStatus) {
	switch {
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	case s.PodIP == "" && len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	}
}

// invalid returns what the API server refuses in a patched status.
func invalid(old, patched *corev1.Pod) (refused field.ErrorList) {
	if patched.UID != old.UID {
		refused = append(refused, field.Invalid(field.NewPath("metadata", "uid"), patched.UID, "field is immutable"))
	}
	if s := &patched.Status; len(s.HostIPs) > 0 && s.HostIPs[0].IP != s.HostIP {
		refused = append(refused, field.Invalid(field.NewPath("status", "hostIPs").Index(0), s.HostIPs[0].IP, "must be equal to `hostIP`"))
	}
	refused = append(refused, restarted(patched, old.Status.ContainerStatuses, patched.Status.ContainerStatuses)...)
	return refused
}

// restarted refuses containers that ended, may not start again, and no longer
// have ended.
func restarted(pod *corev1.Pod, old, now []corev1.ContainerStatus) (refused field.ErrorList) {
	if pod.Spec.RestartPolicy == "" || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return nil
	}
	for _, before := range old {
		ended := before.State.Terminated
		if ended == nil || ended.ExitCode != 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
			continue
		}
		for i := range now {
			if now[i].Name == before.Name && now[i].State.Terminated == nil {
				refused = append(refused, field.Forbidden(field.NewPath("status", "containerStatuses").Index(i).Child("state"), "may not be transitioned to non-terminated state"))
			}
		}
	}
	return refused
}
