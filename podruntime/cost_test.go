// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func TestStartSaysNoMoreThanThereIsToSay(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.DNSPolicy = corev1.DNSClusterFirst // without a cluster DNS
		w.create(pod)
		w.awaitRunning(pod)
		w.mu.Lock()
		reports := w.reports[pod.UID]
		w.mu.Unlock()
		if len(reports) > 3 { // reports: waiting for the sandbox, sandbox ready, container running
			t.Errorf("got %d reports, want 3 at most: %+v", len(reports), reports)
		}
		if got := w.eventsOf("MissingClusterDNS"); len(got) != 1 {
			t.Errorf("got events %q, want one: the containers of a sandbox come with the same settings", got)
		}
	})
}
