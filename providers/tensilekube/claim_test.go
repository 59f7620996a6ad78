// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestTwoUpperClustersOfOneName has a second upper cluster with the same name, and a node of the same name. It
// is refused before it does anything, and the pods of the first one stay.
func TestTwoUpperClustersOfOneName(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	for _, where := range []string{"", w.API.Namespace(t)} {
		name := "twin-" + w.API.NodeName(t)
		first, second := newUpper(t, w, name, "vk-0"), newUpper(t, w, name, "vk-0")
		first.config.Namespace, second.config.Namespace = where, where
		first.Identify("first")
		second.Identify("second")
		p, stop := first.start()
		pod := first.Pod("default", "web", stays())
		first.Create(p, pod)
		first.UntilRuns(p, pod)

		other, _ := second.start()
		second.Until("Ping of the second refuses", func() (bool, string) {
			err := other.Ping(t.Context())
			return err != nil && strings.Contains(err.Error(), "another home cluster has the name "+name), fmt.Sprint(err)
		})
		if list, err := other.GetPods(t.Context()); err == nil {
			t.Errorf("the second sees %d pods of the first, want a refusal", len(list))
		}
		its := second.Pod("default", "web", stays()) // its home never asks about a UID of the first cluster
		if err := other.DeletePod(t.Context(), its.DeepCopy()); err == nil {
			t.Error("the second may delete pods")
		}
		if err := other.CreatePod(t.Context(), its); err == nil {
			t.Error("the second may make pods")
		}
		if writes := second.line.Writes(); len(writes) > 0 {
			t.Errorf("the second wrote %q", writes)
		}

		stop()
		first.line.Writes()
		p, stop = first.start()
		if list, err := p.GetPods(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("after a restart the first sees %d pods (%v), want its own", len(list), err)
		}
		if err := p.Ping(t.Context()); err != nil {
			t.Errorf("Ping of the first: %v", err)
		}
		if writes := first.line.Writes(); len(writes) > 0 {
			t.Errorf("the restart wrote %q", writes)
		}

		// Its Service is made again: the first cluster is known by its pods, and writes nothing.
		stop()
		first.Identify("made-anew")
		p, _ = first.start()
		if list, err := p.GetPods(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("with another Service kubernetes the first sees %d pods (%v), want its own", len(list), err)
		}
		if writes := first.line.Writes(); len(writes) > 0 {
			t.Errorf("with another Service kubernetes the first wrote %q", writes)
		}
		first.Delete(p, pod)
		first.UntilGone(p, pod)
	}
}
