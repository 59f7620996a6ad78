// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPublishedB1ReplacedContainerIsShown: after a change of the image, the container is replaced and the status
// shows the new container, also with restartPolicy Never and OnFailure. Tekton does this with the sidecars of a finished task (tektoncd/pipeline:
// cmd/nop/README.md). The test uses kubectl and containers of the provider process.
func TestPublishedB1ReplacedContainerIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProgram("127.0.0.1", w.api.NodeCredentials(t, w.nodeName), "--provider=process", "--provider-config="+w.processConfig())
	policies := map[string]corev1.RestartPolicy{"never": corev1.RestartPolicyNever, "onfailure": corev1.RestartPolicyOnFailure}
	for name, policy := range policies {
		pod := w.pod(name)
		pod.Spec.RestartPolicy = policy
		pod.Spec.Containers = []corev1.Container{{Name: "s", Image: "nginx", ImagePullPolicy: corev1.PullIfNotPresent}}
		w.create(pod)
	}
	w.awaitRunning(len(policies))
	const image = "docker.io/library/nginx:latest" // the same program
	for name := range policies {
		if _, stderr, err := w.api.Kubectl(t, "-n", w.namespace, "set", "image", "pod/"+name, "s="+image); err != nil {
			t.Fatalf("kubectl set image: %v: %s", err, stderr)
		}
	}
	for name := range policies {
		w.awaitPod(name, "shows the container of the new image", func(pod *corev1.Pod) bool {
			if len(pod.Status.ContainerStatuses) == 0 {
				return false
			}
			s := pod.Status.ContainerStatuses[0]
			if s.State.Terminated != nil {
				t.Fatalf("pod %s is %s, Ready %v, and its container has ended: %+v", name, pod.Status.Phase, conditionTrue(pod, corev1.PodReady), s.State.Terminated)
			}
			return running(pod) && s.State.Running != nil && s.Ready && s.RestartCount == 1 &&
				s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.ExitCode == 0
		})
	}
	w.removeMany(slices.Collect(maps.Keys(policies)))
	w.awaitNoPods()
}
