// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"fmt"
	"testing"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestMachineMakesNoSeriesOfItsOwn: names that a machine gives to containers and network interfaces do not become labels of the node's metrics.
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
	s := measured(pod, said)
	if s.PodRef.Name != pod.Name || s.PodRef.UID != string(pod.UID) || s.CPU != said.CPU {
		t.Errorf("got %+v", s)
	}
	if len(s.Containers) != 0 || len(s.VolumeStats) != 0 || s.Network.Name != "" {
		t.Errorf("got %d containers, %d volumes and the network card %q", len(s.Containers), len(s.VolumeStats), s.Network.Name)
	}
	if cards := s.Network.Interfaces; len(cards) != maxCards || cards[1].Name != "eth1" || *cards[1].RxBytes != received {
		t.Errorf("got the network cards %+v", cards)
	}
}
