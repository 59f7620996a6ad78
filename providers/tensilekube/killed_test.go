// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestLowerAPIServerIsKilled deletes pods at home while the lower API server does not run.
func TestLowerAPIServerIsKilled(t *testing.T) {
	t.Parallel()
	lower := testapi.New(t, testapi.Options{})
	h := newHome(t, testapi.Start(t), startWorker(t, lower))
	h.direct = true
	const stay, leave = 10, 10
	h.start()
	h.create("stays", stay)
	h.create("leaves", leave)
	before := h.untilSettled(stay + leave)
	lower.Kill(t)
	h.delete("leaves", leave)
	h.untilNotReady("")
	pods, err := h.api.Client.CoreV1().Pods(h.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != stay+leave {
		t.Errorf("meanwhile there are %d pods (%v), want %d: nobody can know what has ended", len(pods.Items), err, stay+leave)
	}
	lower.Restart(t)
	after := h.untilSettled(stay)
	for i := range leave {
		delete(before, fmt.Sprintf("leaves-%d", i))
	}
	h.same(before, after)
}
