// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodAddressesChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.startPod(w.pod("web"))
	for _, want := range [][]corev1.PodIP{
		{{IP: "10.0.0.2"}},
		{{IP: "10.0.0.3"}, {IP: "fd00::3"}},
		{{IP: "fd00::4"}, {IP: "10.0.0.4"}},
		{{IP: "10.0.0.5"}},
	} {
		w.backend.Change(w.key("web"), func(pod *corev1.Pod) { pod.Status.PodIP, pod.Status.PodIPs = want[0].IP, want })
		w.awaitPod("web", "has its new addresses", func(pod *corev1.Pod) bool {
			return pod.Status.PodIP == want[0].IP && slices.Equal(pod.Status.PodIPs, want)
		})
	}
	refused := w.requests.those(func(r request) bool { return r.status == http.StatusUnprocessableEntity })
	if len(refused) > 0 {
		t.Errorf("the API server refused:\n%s", lines(refused))
	}
}
