// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodListerFunc lists pods. Callers do not change the pods, and skip nil entries.
type PodListerFunc func(ctx context.Context) ([]*corev1.Pod, error)

// HandleRunningPods returns a handler that answers with the pods of a provider, as a JSON v1.PodList. With a nil
// getPods the handler answers 501.
//
// As with a kubelet, only the identity, the node, the names and images of the containers and the status of each
// pod are shown. A provider's pods carry environment variables with resolved Secrets; these never leave the
// node.
func HandleRunningPods(getPods PodListerFunc) http.HandlerFunc {
	return handlePods(getPods, runningPod)
}

// handlePods answers with the result of show for each pod.
func handlePods(getPods PodListerFunc, show func(*corev1.Pod) corev1.Pod) http.HandlerFunc {
	if getPods == nil {
		return NotImplemented
	}
	return answerErrors(func(w http.ResponseWriter, req *http.Request) error {
		pods, err := getPods(req.Context())
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		list := corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
			Items:    make([]corev1.Pod, 0, len(pods)),
		}
		for _, pod := range pods {
			if pod != nil {
				list.Items = append(list.Items, show(pod))
			}
		}
		return writeJSON(w, &list)
	})
}

// wholePod returns the pod unchanged.
func wholePod(pod *corev1.Pod) corev1.Pod { return *pod }

// runningPod returns the parts of a pod that contain no secrets.
func runningPod(pod *corev1.Pod) corev1.Pod {
	shown := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status:     pod.Status,
	}
	for _, c := range pod.Spec.Containers {
		shown.Spec.Containers = append(shown.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return shown
}

// writeJSON encodes v before writing, so that an encoding error can still become an error response.
func writeJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // an error means that the client has disconnected
	return nil
}
