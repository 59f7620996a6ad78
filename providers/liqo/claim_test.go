// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestTwoHomesOfOneName has a second home cluster with the same clusterName and node name as the first one.
// While the first one has pods in the remote cluster, the second one is refused before it does anything.
func TestTwoHomesOfOneName(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	name := "twin-" + w.API.NodeName(t)
	first, second := newHome(t, w, name, "vk-0"), newHome(t, w, name, "vk-0")
	second.config.Namespaces = first.config.Namespaces
	first.Identify("first")
	second.Identify("second")
	p, stop := first.start()
	pod := first.Pod("default", "web", stays())
	first.Create(p, pod)
	first.UntilRuns(p, pod)

	other, _ := second.start()
	second.Until("Ping of the second refuses", func() (bool, string) {
		err := other.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "another home cluster has the name "+name) &&
			strings.Contains(err.Error(), first.identity().PodName(pod)), fmt.Sprint(err)
	})
	if list, err := other.GetPods(t.Context()); err == nil {
		t.Errorf("the second sees %d pods of the first, want a refusal", len(list))
	}
	if err := other.DeletePod(t.Context(), pod.DeepCopy()); err == nil {
		t.Error("the second may delete a pod of the first")
	}
	its := second.Pod("default", "web", stays())
	if err := other.CreatePod(t.Context(), its); err == nil {
		t.Error("the second may make pods")
	}
	if writes := second.line.Writes(); len(writes) > 0 {
		t.Errorf("the second wrote %q", writes)
	}

	// Its Service is made again: the first home is known by its pods, and writes nothing.
	stop()
	first.line.Writes()
	first.Identify("made-anew")
	p, _ = first.start()
	if list, err := p.GetPods(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("with another Service kubernetes the first sees %d pods (%v), want its own", len(list), err)
	}
	if err := p.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
		t.Error(err)
	}
	if writes := first.line.Writes(); len(writes) > 0 {
		t.Errorf("with another Service kubernetes the first wrote %q", writes)
	}
	first.Delete(p, pod)
	first.UntilGone(p, pod)

	second.Until("the name is free", func() (bool, string) { err := other.Ping(t.Context()); return err == nil, fmt.Sprint(err) })
	second.Create(other, its)
	second.UntilRuns(other, its)
}
