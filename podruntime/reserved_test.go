// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func fixed() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
}

// TestAllocatableIsWithoutWhatIsReserved: the allocatable resources of the node are its capacity without the
// reserved resources and the eviction thresholds.
func TestAllocatableIsWithoutWhatIsReserved(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		for _, test := range []struct {
			name                    string
			system, kube, eviction  map[string]string
			cpu, memory, disk, pods string
		}{
			{"nothing by default", nil, nil, nil, "4", "8Gi", "100Gi", "20"},
			{
				"all together", map[string]string{"cpu": "500m", "memory": "1Gi", "pid": "1000"}, map[string]string{"cpu": "250m", "ephemeral-storage": "10Gi"},
				map[string]string{"memory.available": "1Gi", "nodefs.available": "10%", "imagefs.available": "15%", "pid.available": "5%"}, "3250m", "6Gi", "80Gi", "20",
			},
			{"all there is", map[string]string{"cpu": "4"}, nil, nil, "0", "8Gi", "100Gi", "20"},
		} {
			w.kill()
			w.configure = func(c *Config) {
				c.Capacity, c.SystemReserved, c.KubeReserved, c.EvictionHard = fixed(), test.system, test.kube, test.eviction
			}
			w.start()
			n := &corev1.Node{}
			w.runtime.ConfigureNode(t.Context(), n)
			for name, want := range map[corev1.ResourceName]string{
				corev1.ResourceCPU: test.cpu, corev1.ResourceMemory: test.memory, corev1.ResourceEphemeralStorage: test.disk, corev1.ResourcePods: test.pods,
			} {
				has, got := fixed()[name], n.Status.Allocatable[name]
				if q := resource.MustParse(want); got.Cmp(q) != 0 || has.Cmp(n.Status.Capacity[name]) != 0 {
					t.Errorf("%s: %s: got %s of %v, want %s of %s", test.name, name, got.String(), n.Status.Capacity[name], want, has.String())
				}
			}
			if _, offered := n.Status.Allocatable["pid"]; offered {
				t.Errorf("%s: processes are offered to a scheduler: %v", test.name, n.Status.Allocatable)
			}
		}
	})
}

// TestCapacityOfTheConfigurationCounts: the configured capacity replaces a capacity that the node already has.
func TestCapacityOfTheConfigurationCounts(t *testing.T) {
	p := nodeProperties{root: t.TempDir(), capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}
	s := &corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourcePods: resource.MustParse("7")}}
	s.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("60")}
	p.fillCapacity(s)
	if s.Capacity.Cpu().Value() != 3 || s.Allocatable.Cpu().Value() != 3 || s.Capacity.Pods().Value() != 7 || s.Allocatable.Pods().Value() != 7 {
		t.Errorf("got %v, allocatable %v", s.Capacity, s.Allocatable)
	}
}

func TestReservationsThatCannotBe(t *testing.T) {
	for _, test := range []struct {
		name, setting, want string
	}{
		{"gpu", "1", "systemReserved: gpu: want one of [cpu ephemeral-storage memory pid]"},
		{"memory", "10%", `systemReserved: memory: "10%": want a quantity, not a share`},
		{"memory", "-1", `systemReserved: memory: "-1" is negative`},
		{"memory", "much", `systemReserved: memory: "much": `},
		{"cpu", "5", "keep 5 of cpu from pods, and the node has 4"},
		{"memory", "7900Mi", "keep 8212Mi of memory from pods, and the node has 8Gi"},
	} {
		_, err := reserveResources(Config{
			Root: t.TempDir(), Capacity: fixed(), SystemReserved: map[string]string{test.name: test.setting},
			KubeReserved: map[string]string{"memory": "212Mi"}, EvictionHard: map[string]string{"memory.available": "100Mi"},
		})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s: got %v, want %q", test.name, test.setting, err, test.want)
		}
	}
}
