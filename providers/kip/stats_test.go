// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"fmt"
	"testing"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestMachineMakesNoSeriesOfItsOwn: only the names of the pod's containers become labels of the node's metrics, each once.
func TestMachineMakesNoSeriesOfItsOwn(t *testing.T) {
	used, received := uint64(7), uint64(9)
	said := statsv1alpha1.PodStats{
		PodRef: statsv1alpha1.PodReference{Name: "another"}, CPU: &statsv1alpha1.CPUStats{UsageCoreNanoSeconds: &used}, Network: &statsv1alpha1.NetworkStats{},
	}
	for n := range 10 * maxCards {
		name := fmt.Sprintf("made-up-%d", n)
		said.Containers = append(said.Containers, statsv1alpha1.ContainerStats{Name: name})
		said.VolumeStats = append(said.VolumeStats, statsv1alpha1.VolumeStats{Name: name})
		said.Network.Interfaces = append(said.Network.Interfaces, statsv1alpha1.InterfaceStats{Name: name, RxBytes: &received})
	}
	pod := aPod(nil, nil)
	for range 2 {
		own := statsv1alpha1.ContainerStats{Name: pod.Spec.Containers[0].Name, CPU: said.CPU, Memory: &statsv1alpha1.MemoryStats{WorkingSetBytes: &used}}
		own.UserDefinedMetrics = []statsv1alpha1.UserDefinedMetric{{UserDefinedMetricDescriptor: statsv1alpha1.UserDefinedMetricDescriptor{Name: "made-up"}}}
		said.Containers = append(said.Containers, own)
	}
	s := measured(pod, said)
	if s.PodRef.Name != pod.Name || s.PodRef.UID != string(pod.UID) || s.CPU != said.CPU {
		t.Errorf("got %+v", s)
	}
	if len(s.Containers) != 1 || s.Containers[0].CPU != said.CPU || *s.Containers[0].Memory.WorkingSetBytes != used || s.Containers[0].UserDefinedMetrics != nil {
		t.Errorf("got the containers %+v, want the one of the pod", s.Containers)
	}
	if len(s.VolumeStats) != 0 || s.Network.Name != "" {
		t.Errorf("got %d volumes and the network card %q", len(s.VolumeStats), s.Network.Name)
	}
	if cards := s.Network.Interfaces; len(cards) != maxCards || cards[1].Name != "eth1" || *cards[1].RxBytes != received {
		t.Errorf("got the network cards %+v", cards)
	}
}
