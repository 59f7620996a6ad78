// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// countOf returns a value of the runtime, or nil if there is none.
func countOf(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	value := v.GetValue()
	return &value
}

func timeOf(nanoseconds int64) metav1.Time { return metav1.NewTime(time.Unix(0, nanoseconds)) }

func cpuStats(u *runtimeapi.CpuUsage) *statsv1alpha1.CPUStats {
	if u == nil {
		return nil
	}
	return &statsv1alpha1.CPUStats{
		Time: timeOf(u.GetTimestamp()), UsageNanoCores: countOf(u.GetUsageNanoCores()),
		UsageCoreNanoSeconds: countOf(u.GetUsageCoreNanoSeconds()), PSI: psiStats(u.GetPsi()),
	}
}

func memoryStats(u *runtimeapi.MemoryUsage) *statsv1alpha1.MemoryStats {
	if u == nil {
		return nil
	}
	return &statsv1alpha1.MemoryStats{
		Time: timeOf(u.GetTimestamp()), AvailableBytes: countOf(u.GetAvailableBytes()), UsageBytes: countOf(u.GetUsageBytes()),
		WorkingSetBytes: countOf(u.GetWorkingSetBytes()), RSSBytes: countOf(u.GetRssBytes()),
		PageFaults: countOf(u.GetPageFaults()), MajorPageFaults: countOf(u.GetMajorPageFaults()), PSI: psiStats(u.GetPsi()),
	}
}

func ioStats(u *runtimeapi.IoUsage) *statsv1alpha1.IOStats {
	if u == nil {
		return nil
	}
	return &statsv1alpha1.IOStats{Time: timeOf(u.GetTimestamp()), PSI: psiStats(u.GetPsi())}
}

func swapStats(u *runtimeapi.SwapUsage) *statsv1alpha1.SwapStats {
	if u == nil {
		return nil
	}
	return &statsv1alpha1.SwapStats{
		Time: timeOf(u.GetTimestamp()), SwapAvailableBytes: countOf(u.GetSwapAvailableBytes()), SwapUsageBytes: countOf(u.GetSwapUsageBytes()),
	}
}

func psiStats(p *runtimeapi.PsiStats) *statsv1alpha1.PSIStats {
	if p == nil {
		return nil
	}
	data := func(d *runtimeapi.PsiData) statsv1alpha1.PSIData {
		return statsv1alpha1.PSIData{Total: d.GetTotal(), Avg10: d.GetAvg10(), Avg60: d.GetAvg60(), Avg300: d.GetAvg300()}
	}
	return &statsv1alpha1.PSIStats{Full: data(p.GetFull()), Some: data(p.GetSome())}
}

func networkStats(u *runtimeapi.NetworkUsage) *statsv1alpha1.NetworkStats {
	if u.GetDefaultInterface() == nil {
		return nil
	}
	one := func(i *runtimeapi.NetworkInterfaceUsage) statsv1alpha1.InterfaceStats {
		return statsv1alpha1.InterfaceStats{
			Name: i.GetName(), RxBytes: countOf(i.GetRxBytes()), RxErrors: countOf(i.GetRxErrors()), TxBytes: countOf(i.GetTxBytes()), TxErrors: countOf(i.GetTxErrors()),
		}
	}
	n := &statsv1alpha1.NetworkStats{Time: timeOf(u.GetTimestamp()), InterfaceStats: one(u.GetDefaultInterface())}
	for _, i := range u.GetInterfaces() {
		n.Interfaces = append(n.Interfaces, one(i))
	}
	if len(n.Interfaces) == 0 {
		n.Interfaces = []statsv1alpha1.InterfaceStats{n.InterfaceStats}
	}
	return n
}

// sumOf adds up the usage of containers. Each sum includes the containers that report the value.
func sumOf(containers []statsv1alpha1.ContainerStats) statsv1alpha1.ContainerStats {
	var sum statsv1alpha1.ContainerStats
	for _, c := range containers {
		if c.CPU != nil {
			if sum.CPU == nil {
				sum.CPU = &statsv1alpha1.CPUStats{}
			}
			raiseTime(&sum.CPU.Time, c.CPU.Time)
			addCount(&sum.CPU.UsageCoreNanoSeconds, c.CPU.UsageCoreNanoSeconds)
			addCount(&sum.CPU.UsageNanoCores, c.CPU.UsageNanoCores)
		}
		if c.Memory != nil {
			if sum.Memory == nil {
				sum.Memory = &statsv1alpha1.MemoryStats{}
			}
			raiseTime(&sum.Memory.Time, c.Memory.Time)
			addCount(&sum.Memory.UsageBytes, c.Memory.UsageBytes)
			addCount(&sum.Memory.WorkingSetBytes, c.Memory.WorkingSetBytes)
			addCount(&sum.Memory.RSSBytes, c.Memory.RSSBytes)
			addCount(&sum.Memory.PageFaults, c.Memory.PageFaults)
			addCount(&sum.Memory.MajorPageFaults, c.Memory.MajorPageFaults)
		}
		if c.Swap != nil {
			if sum.Swap == nil {
				sum.Swap = &statsv1alpha1.SwapStats{}
			}
			raiseTime(&sum.Swap.Time, c.Swap.Time)
			addCount(&sum.Swap.SwapUsageBytes, c.Swap.SwapUsageBytes)
			addCount(&sum.Swap.SwapAvailableBytes, c.Swap.SwapAvailableBytes)
		}
	}
	return sum
}

func addCount(to **uint64, v *uint64) {
	if v == nil {
		return
	}
	sum := *v
	if *to != nil {
		sum += **to
	}
	*to = &sum
}

func raiseTime(to *metav1.Time, t metav1.Time) {
	if t.After(to.Time) {
		*to = t
	}
}
