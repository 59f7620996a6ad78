// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"sync"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Stats implements service.Measurer, with one request for each running pod, because Nomad has none for several.
func (d *driver) Stats(ctx context.Context, of []service.Target[*instance]) ([]statsv1alpha1.PodStats, error) {
	found, _ := d.found()
	all := []statsv1alpha1.PodStats{}
	var mu sync.Mutex
	var requests errgroup.Group
	requests.SetLimit(together)
	for _, t := range of {
		a := t.Instance.alloc
		if a == nil || a.ClientStatus != nomadapi.AllocClientStatusRunning {
			continue
		}
		requests.Go(func() error {
			usage, err := d.client.stats(ctx, a.ID)
			if err != nil {
				return nil //nolint:nilerr // the allocation has just ended, or its client is away
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, podStats(t.Pod, usage, found.mhz))
			return nil
		})
	}
	_ = requests.Wait()
	return all, ctx.Err()
}

// podStats converts Nomad's units: MHz, and bytes.
func podStats(pod *corev1.Pod, usage *nomadapi.AllocResourceUsage, mhz float64) statsv1alpha1.PodStats {
	at := metav1.NewTime(time.Unix(0, usage.Timestamp))
	return service.PodStats(pod, func(c *statsv1alpha1.ContainerStats) {
		task := usage.Tasks[c.Name]
		if task == nil || task.ResourceUsage == nil || task.ResourceUsage.CpuStats == nil || task.ResourceUsage.MemoryStats == nil {
			return
		}
		var nano uint64
		if mhz > 0 {
			nano = uint64(task.ResourceUsage.CpuStats.TotalTicks / mhz * 1e9)
		}
		m := task.ResourceUsage.MemoryStats
		bytes := max(m.Usage, m.RSS)
		c.CPU = &statsv1alpha1.CPUStats{Time: at, UsageNanoCores: &nano}
		c.Memory = &statsv1alpha1.MemoryStats{Time: at, UsageBytes: &bytes, WorkingSetBytes: &bytes, RSSBytes: &m.RSS}
	})
}
