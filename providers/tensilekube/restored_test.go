// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestLowerClusterIsRestored restores the lower cluster to an earlier state: pods that were created since are
// missing, and pods that were deleted since are back.
func TestLowerClusterIsRestored(t *testing.T) {
	t.Parallel()
	lower := testapi.New(t, testapi.Options{})
	h := newHome(t, testapi.Start(t), startWorker(t, lower))
	h.direct = true // a direct connection is refused during the restore, which a watch does not take for its end
	const each = 12 // more than half of the pods at once, so that their loss is doubted
	h.start()
	h.create("stays", each)
	h.create("leaves", each)
	before := h.untilSettled(2 * each)
	restore := lower.Snapshot(t)
	h.untilReady()
	h.create("comes", each)
	h.delete("leaves", each)
	h.untilSettled(2 * each)
	restore()
	h.Until("the node says that pods are missing", func() (bool, string) {
		n, err := h.api.Client.CoreV1().Nodes().Get(t.Context(), h.Node, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, c := range n.Status.Conditions {
			if c.Type == "PodsMissing" {
				return c.Status == corev1.ConditionTrue, c.Message
			}
		}
		return false, "there is no condition"
	})
	after := h.untilSettled(2 * each)
	for i := range each {
		delete(before, fmt.Sprintf("leaves-%d", i))
	}
	h.same(before, after)
	for name, is := range after {
		if strings.HasPrefix(name, "comes") && !strings.HasSuffix(is, " 1") {
			t.Errorf("pod %s, which was lost, is container %s now, want one restart", name, is)
		}
	}
}
