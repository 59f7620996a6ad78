// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reasonRemoved is the status reason of a pod that a third party deletes a third party in the remote cluster.
const reasonRemoved = "RemovedInRemoteCluster"

// remover is the party that requested the deletion of a remote pod.
type remover int

const (
	byHome        remover = iota // or the pod is not being deleted
	bySomebody                   // in the remote cluster
	byNobodyKnows                // unknown: requested before this process started
)

// Status converts the status of a remote pod to the status of the home pod. It leaves out details about remote
// nodes and scheduling, except the reason why a pod is not scheduled. by is the party that deletes the pod, if it
// is being deleted.
func Status(remote *corev1.Pod, by remover) corev1.PodStatus {
	from := remote.Status.DeepCopy()
	s := corev1.PodStatus{
		Phase: from.Phase, Reason: from.Reason, Message: from.Message, StartTime: from.StartTime, PodIP: from.PodIP, PodIPs: from.PodIPs,
		QOSClass: from.QOSClass, InitContainerStatuses: from.InitContainerStatuses, ContainerStatuses: from.ContainerStatuses,
	}
	if s.Phase == "" {
		s.Phase = corev1.PodPending
	}
	for _, c := range from.Conditions {
		switch c.Type {
		case corev1.PodScheduled:
			if c.Status == corev1.ConditionFalse && s.Message == "" {
				s.Reason, s.Message = c.Reason, "in the remote cluster: "+c.Message
			}
		case corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.DisruptionTarget, corev1.PodReadyToStartContainers:
			c.ObservedGeneration = 0 // generations of the remote and the home pod are unrelated
			s.Conditions = append(s.Conditions, c)
		}
	}
	before := restartsBefore(remote)
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			list[i].RestartCount += before[list[i].Name]
		}
	}
	switch { // the exit code of a deleted pod does not show whether its work succeeded
	case by == bySomebody:
		s.Reason, s.Message = reasonRemoved, "somebody removes the pod in the remote cluster"
		if isTerminal(s.Phase) {
			s.Phase = corev1.PodRunning // until the pod is gone: then the node decides
		}
	case by == byNobodyKnows && s.Phase == corev1.PodSucceeded:
		s.Phase, s.Reason, s.Message = corev1.PodFailed, reasonRemoved, "the pod was removed while the node was away"
	}
	return s
}

func isTerminal(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// restartsBefore returns the restart counts from before the remote pod was recreated.
func restartsBefore(remote *corev1.Pod) map[string]int32 {
	var before map[string]int32
	if json.Unmarshal([]byte(remote.Annotations[annotationRestarts]), &before) != nil {
		return nil // the annotation is missing, or another client changed it
	}
	return before
}

// restartsOf returns the initial restart counts of a new pod. A container that ran before counts as restarted.
func restartsOf(s *corev1.PodStatus) map[string]int32 {
	before := map[string]int32{}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		if ran := c.ContainerID != "" || c.RestartCount > 0; ran {
			before[c.Name] = c.RestartCount + 1
		}
	}
	return before
}

// homeView returns a remote pod with the identity and the spec of the home pod, which is nil if it is unknown.
// Without a home pod it still sets the node name, because the node never deletes pods of other nodes. All fields
// but the status are shared with remote and home.
func homeView(remote, home *corev1.Pod, node string, by remover) *corev1.Pod {
	at, uid := homeOf(remote)
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name, UID: uid, CreationTimestamp: remote.CreationTimestamp},
	}
	if home != nil && home.UID == uid {
		pod.ObjectMeta, pod.Spec = home.ObjectMeta, home.Spec
	} else {
		pod.Spec = remote.Spec
		pod.Spec.NodeName = node
		came := sentOf(remote)
		pod.Labels, pod.Annotations = selectKeys(remote.Labels, came.Labels), selectKeys(remote.Annotations, came.Annotations)
	}
	pod.Generation = 0 // the remote status does not refer to a generation at home
	pod.Status = Status(remote, by)
	return pod
}

// selectKeys returns the entries of m with the keys.
func selectKeys(m map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if v, ok := m[k]; ok {
			out[k] = v
		}
	}
	return out
}
