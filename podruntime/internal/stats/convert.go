// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// count returns a value of the runtime, or nil without one.
func count(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	value := v.GetValue()
	return &value
}

func at(nanoseconds int64) metav1.Time { return metav1.NewTime(time.Unix(0, nanoseconds)) }

func cpu(u *runtimeapi.CpuUsage) *statsv1alpha1.CPUStats {
	if u == nil {
		return nil
	}
	return &statsv1alpha1.CPUStats{
		Time: at(u.GetTimestamp()), UsageNanoCores: count(u.GetUsageNanoCores()),
		UsageCoreNanoSeconds: count(u.GetUsageCoreNanoSeconds()), PSI: psi(u.GetPsi()),
	}
}

func memory(u *runtimeapi.MemoryUsage) *statsv1alpha1.MemoryStats {
	if u == nil {
		return nil
	}
	return &statsv1alpha1.MemoryStats{
		Time: at(u.GetTimestamp()), AvailableBytes: count(u.GetAvailableBytes()), UsageBytes: count(u.GetUsageBytes()),
		WorkingSetBytes: count(u.GetWorkingSetBytes()), RSSBytes: count(u.GetRssBytes()),
		PageFaults: count(u.GetPageFaults()), MajorPageFaults: count(u.GetMajorPageFaults()), PSI: psi(u.GetPsi()),
	}
}

func io(u *runtimeapi.IoUsage) *statsv1alpha1.IOStats {
	if u == nil {
		return nil
	}
	return &statsv1alpha1.IOStats{Time: at(u.GetTimestamp()), PSI: psi(u.GetPsi())}
}

func swap(u *runtimeapi.SwapUsage) *statsv1alpha1.SwapStats {
	if u == nil {
		return nil
	}
	return &statsv1alpha1.SwapStats{
		Time: at(u.GetTimestamp()), SwapAvailableBytes: count(u.GetSwapAvailableBytes()), SwapUsageBytes: count(u.GetSwapUsageBytes()),
	}
}

func psi(p *runtimeapi.PsiStats) *statsv1alpha1.PSIStats {
	if p == nil {
		return nil
	}
	data := func(d *runtimeapi.PsiData) statsv1alpha1.PSIData {
		return statsv1alpha1.PSIData{Total: d.GetTotal(), Avg10: d.GetAvg10(), Avg60: d.GetAvg60(), Avg300: d.GetAvg300()}
	}
	return &statsv1alpha1.PSIStats{Full: data(p.GetFull()), Some: data(p.GetSome())}
}

func network(u *runtimeapi.NetworkUsage) *statsv1alpha1.NetworkStats {
	if u.GetDefaultInterface() == nil {
		return nil
	}
	one := func(i *runtimeapi.NetworkInterfaceUsage) statsv1alpha1.InterfaceStats {
		return statsv1alpha1.InterfaceStats{
			Name: i.GetName(), RxBytes: count(i.GetRxBytes()), RxErrors: count(i.GetRxErrors()), TxBytes: count(i.GetTxBytes()), TxErrors: count(i.GetTxErrors()),
		}
	}
	n := &statsv1alpha1.NetworkStats{Time: at(u.GetTimestamp()), InterfaceStats: one(u.GetDefaultInterface())}
	for _, i := range u.GetInterfaces() {
		n.Interfaces = append(n.Interfaces, one(i))
	}
	if len(n.Interfaces) == 0 {
		n.Interfaces = []statsv1alpha1.InterfaceStats{n.InterfaceStats}
	}
	return n
}

// sumOf adds up the use of containers: each figure from the containers that have it.
func sumOf(containers []statsv1alpha1.ContainerStats) statsv1alpha1.ContainerStats {
	var sum statsv1alpha1.ContainerStats
	for _, c := range containers {
		if c.CPU != nil {
			if sum.CPU == nil {
				sum.CPU = &statsv1alpha1.CPUStats{}
			}
			later(&sum.CPU.Time, c.CPU.Time)
			add(&sum.CPU.UsageCoreNanoSeconds, c.CPU.UsageCoreNanoSeconds)
			add(&sum.CPU.UsageNanoCores, c.CPU.UsageNanoCores)
		}
		if c.Memory != nil {
			if sum.Memory == nil {
				sum.Memory = &statsv1alpha1.MemoryStats{}
			}
			later(&sum.Memory.Time, c.Memory.Time)
			add(&sum.Memory.UsageBytes, c.Memory.UsageBytes)
			add(&sum.Memory.WorkingSetBytes, c.Memory.WorkingSetBytes)
			add(&sum.Memory.RSSBytes, c.Memory.RSSBytes)
			add(&sum.Memory.PageFaults, c.Memory.PageFaults)
			add(&sum.Memory.MajorPageFaults, c.Memory.MajorPageFaults)
		}
		if c.Swap != nil {
			if sum.Swap == nil {
				sum.Swap = &statsv1alpha1.SwapStats{}
			}
			later(&sum.Swap.Time, c.Swap.Time)
			add(&sum.Swap.SwapUsageBytes, c.Swap.SwapUsageBytes)
			add(&sum.Swap.SwapAvailableBytes, c.Swap.SwapAvailableBytes)
		}
	}
	return sum
}

func add(to **uint64, v *uint64) {
	if v == nil {
		return
	}
	sum := *v
	if *to != nil {
		sum += **to
	}
	*to = &sum
}

func later(to *metav1.Time, t metav1.Time) {
	if t.After(to.Time) {
		*to = t
	}
}
