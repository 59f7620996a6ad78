// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestTwoHomesOfOneName has a second home cluster with the same clusterName and node name as the first one. The
// second one is refused before it does anything, and the pods of the first one stay.
func TestTwoHomesOfOneName(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20)
	first, second := newHome(t, c, "twin"), newHome(t, c, "twin")
	first.Identify("first")
	second.Identify("second")
	p, stop := first.start()
	pod := first.Pod("default", "web", program.Program{Stay: program.Forever})
	first.Create(p, pod)
	first.UntilRuns(p, pod)

	other, _ := second.start()
	second.Until("Ping of the second refuses", func() (bool, string) {
		err := other.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "another home cluster has the name twin"), fmt.Sprint(err)
	})
	if list, err := other.GetPods(t.Context()); err == nil {
		t.Errorf("the second sees %d pods of the first, want a refusal", len(list))
	}
	its := second.Pod("default", "web", program.Program{Stay: program.Forever})
	if err := other.CreatePod(t.Context(), its.DeepCopy()); err == nil {
		t.Error("the second may make pods")
	}
	if err := other.DeletePod(t.Context(), its); err == nil {
		t.Error("the second may delete pods")
	}
	if writes := second.line.Writes(); len(writes) > 0 {
		t.Errorf("the second wrote %q", writes)
	}

	stop()
	first.line.Writes()
	p, _ = first.start()
	if list, err := p.GetPods(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("after a restart the first sees %d pods (%v), want its own", len(list), err)
	}
	if writes := first.line.Writes(); len(writes) > 0 {
		t.Errorf("the restart wrote %q", writes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.seen, func(r string) bool { return strings.Contains(r, "/services") }); i >= 0 {
		t.Errorf("CCI was asked %s, which it does not have", c.seen[i])
	}
}
