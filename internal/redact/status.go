// SPDX-License-Identifier: Apache-2.0

package redact

import corev1 "k8s.io/api/core/v1"

// Status redacts the texts of a status in place. The termination message of a container is not truncated, and only known values are removed from it,
// because the container wrote it, and the API limits it.
func Status(s *corev1.PodStatus, values ...*Values) {
	text := func(message *string) {
		if *message != "" {
			*message = Text(*message, values...)
		}
	}
	text(&s.Message)
	for i := range s.Conditions {
		text(&s.Conditions[i].Message)
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			for _, state := range []*corev1.ContainerState{&list[i].State, &list[i].LastTerminationState} {
				if state.Waiting != nil {
					text(&state.Waiting.Message)
				}
				if t := state.Terminated; t != nil && t.Message != "" {
					t.Message, _ = removeValues(t.Message, values) // text that looks like a credential may be a result, and stays
				}
			}
		}
	}
}
