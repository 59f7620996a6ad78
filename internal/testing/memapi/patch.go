// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
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
	if refused := invalidParts(old, &patched); len(refused) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), old.Name, refused)
	}
	if equality.Semantic.DeepEqual(pod, old) {
		return pod, nil // like the API server, which writes nothing in this case
	}
	a.settlePod(Client, old, pod)
	return pod.DeepCopy(), nil
}

// matchIPs keeps podIPs in step with podIP. podIP wins if they differ.
func matchIPs(s *corev1.PodStatus) {
	switch {
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	case s.PodIP == "" && len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	}
}

// invalidParts returns the parts of a patched status that the API server refuses.
func invalidParts(old, patched *corev1.Pod) (refused field.ErrorList) {
	if patched.UID != old.UID {
		refused = append(refused, field.Invalid(field.NewPath("metadata", "uid"), patched.UID, "field is immutable"))
	}
	if s := &patched.Status; len(s.HostIPs) > 0 && s.HostIPs[0].IP != s.HostIP {
		refused = append(refused, field.Invalid(field.NewPath("status", "hostIPs").Index(0), s.HostIPs[0].IP, "must be equal to `hostIP`"))
	}
	status := field.NewPath("status")
	restarts := func(containers []corev1.Container) func(name string, code int32) bool {
		return func(name string, code int32) bool {
			i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
			return i >= 0 && podstatus.RestartsAfter(old, &containers[i], code)
		}
	}
	never := func(string, int32) bool { return false }
	if !restartsAll(old) {
		refused = append(refused, refuseRestart(status.Child("containerStatuses"), old.Status.ContainerStatuses, patched.Status.ContainerStatuses, restarts(old.Spec.Containers))...)
		refused = append(refused, refuseRestart(status.Child("initContainerStatuses"), old.Status.InitContainerStatuses, patched.Status.InitContainerStatuses, restarts(old.Spec.InitContainers))...)
	}
	refused = append(refused, refuseRestart(status.Child("ephemeralContainerStatuses"), old.Status.EphemeralContainerStatuses, patched.Status.EphemeralContainerStatuses, never)...)
	return refused
}

// refuseRestart refuses a status in which an ended container that may not start again is no longer ended, as
// ValidatePodStatusUpdate of Kubernetes 1.37 does.
func refuseRestart(path *field.Path, old, now []corev1.ContainerStatus, mayRestart func(name string, code int32) bool) (refused field.ErrorList) {
	for i, before := range old {
		if before.State.Terminated == nil || mayRestart(before.Name, before.State.Terminated.ExitCode) {
			continue
		}
		if slices.ContainsFunc(now, func(s corev1.ContainerStatus) bool { return s.Name == before.Name && s.State.Terminated == nil }) {
			refused = append(refused, field.Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
	return refused
}

// restartsAll reports whether the end of a container may start all containers of the pod again.
func restartsAll(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}
