// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestLiqoDoesNotRun has a remote cluster with Liqo's kinds but without its controllers. The status of the pod
// says that it is not made.
func TestLiqoDoesNotRun(t *testing.T) {
	api := testapi.Start(t)
	install(t, api)
	u := newHome(t, &worker{Worker: remotetest.StartWorker(t, api)}, "unmade", "vk-0")
	if realDir() != "" {
		t.Skip("its controllers run")
	}
	p, _ := u.start()
	pod := u.Pod("default", "web", stays())
	u.Create(p, pod)
	u.Until("the pod says why it waits", func() (bool, string) {
		reports := u.ReportsOf(pod.UID)
		if len(reports) == 0 {
			return false, "nothing was told"
		}
		s := reports[len(reports)-1].Status
		return s.Phase == "Pending" && strings.Contains(s.Message, "has not made the pod of ShadowPod"), fmt.Sprint(s.Phase, " ", s.Message)
	})
	u.Delete(p, pod)
	u.UntilGone(p, pod)
}
