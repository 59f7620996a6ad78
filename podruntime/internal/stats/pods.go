// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// podStats returns the usage of pods with a ready sandbox, sorted by namespace and name.
func (s *Stats) podStats(ctx context.Context, fs *statsv1alpha1.FsStats) ([]statsv1alpha1.PodStats, error) {
	sandboxes, err := s.readySandboxes(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure pods: %w", err)
	}
	containers, err := s.runningContainers(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure pods: %w", err)
	}
	whole, err := s.sandboxStats(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure pods: %w", err)
	}
	pods := make([]statsv1alpha1.PodStats, 0, len(sandboxes))
	for _, sandbox := range sandboxes {
		pod := statsv1alpha1.PodStats{
			PodRef:    podRef(sandbox.GetMetadata()),
			StartTime: metav1.NewTime(time.Unix(0, sandbox.GetCreatedAt())),
		}
		live := map[string]uint64{}
		for _, c := range containers[sandbox.GetId()] {
			stats := s.containerUse(c, pod.PodRef, fs)
			pod.Containers = append(pod.Containers, stats)
			if stats.CPU != nil && stats.CPU.UsageCoreNanoSeconds != nil {
				live[c.container.GetId()] = *stats.CPU.UsageCoreNanoSeconds
			}
		}
		s.addUsage(&pod, sandbox.GetId(), live, whole[sandbox.GetId()])
		if pod.Network == nil {
			pod.Network = s.sandboxNetwork(ctx, sandbox.GetId())
		}
		s.addStorage(ctx, &pod, fs)
		pods = append(pods, pod)
	}
	s.forgetGone(sandboxes)
	return pods, nil
}

func podRef(m *runtimeapi.PodSandboxMetadata) statsv1alpha1.PodReference {
	return statsv1alpha1.PodReference{Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUid()}
}

// readySandboxes returns the latest ready sandbox of each pod.
func (s *Stats) readySandboxes(ctx context.Context) ([]*runtimeapi.PodSandbox, error) {
	list, err := s.config.Runtime.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{
		LabelSelector: s.config.Labels, State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	})
	if err != nil {
		return nil, err
	}
	latest := map[string]*runtimeapi.PodSandbox{}
	for _, sandbox := range list {
		uid := sandbox.GetMetadata().GetUid()
		if other := latest[uid]; other == nil || other.GetCreatedAt() < sandbox.GetCreatedAt() {
			latest[uid] = sandbox
		}
	}
	return slices.SortedFunc(maps.Values(latest), func(a, b *runtimeapi.PodSandbox) int {
		return cmp.Or(cmp.Compare(a.GetMetadata().GetNamespace(), b.GetMetadata().GetNamespace()),
			cmp.Compare(a.GetMetadata().GetName(), b.GetMetadata().GetName()))
	}), nil
}

// measured is a running container with its usage.
type measured struct {
	container *runtimeapi.Container
	stats     *runtimeapi.ContainerStats
}

// runningContainers returns the measured running containers, by sandbox, sorted by name.
func (s *Stats) runningContainers(ctx context.Context) (map[string][]measured, error) {
	list, err := s.config.Runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{
		LabelSelector: s.config.Labels, State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	})
	if err != nil {
		return nil, err
	}
	all, err := s.config.Runtime.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{LabelSelector: s.config.Labels})
	if err != nil {
		return nil, err
	}
	stats := map[string]*runtimeapi.ContainerStats{}
	for _, one := range all {
		stats[one.GetAttributes().GetId()] = one
	}
	slices.SortFunc(list, func(a, b *runtimeapi.Container) int {
		return cmp.Compare(a.GetMetadata().GetName(), b.GetMetadata().GetName())
	})
	bySandbox := map[string][]measured{}
	for _, c := range list {
		if one := stats[c.GetId()]; one != nil {
			bySandbox[c.GetPodSandboxId()] = append(bySandbox[c.GetPodSandboxId()], measured{c, one})
		}
	}
	return bySandbox, nil
}

// sandboxStats returns the usage of whole sandboxes, or nil if the runtime does not measure it. Runtimes report that with various errors. The usage
// of containers is then summed up. If the runtime has measured sandboxes before, a failure is an error, because the sums would be less than the
// earlier values.
func (s *Stats) sandboxStats(ctx context.Context) (map[string]*runtimeapi.LinuxPodSandboxStats, error) {
	list, err := s.config.Runtime.ListPodSandboxStats(ctx, &runtimeapi.PodSandboxStatsFilter{LabelSelector: s.config.Labels})
	if err != nil && ctx.Err() == nil && !s.whole && status.Code(err) != codes.Unavailable {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.whole = s.whole || len(list) > 0
	known := map[string]*runtimeapi.LinuxPodSandboxStats{}
	for _, one := range list {
		known[one.GetAttributes().GetId()] = one.GetLinux()
	}
	return known, nil
}

// addUsage adds the usage of a whole pod: the runtime's values, or the sum of its containers.
func (s *Stats) addUsage(pod *statsv1alpha1.PodStats, sandbox string, live map[string]uint64, whole *runtimeapi.LinuxPodSandboxStats) {
	pod.CPU, pod.Memory, pod.IO = cpuStats(whole.GetCpu()), memoryStats(whole.GetMemory()), ioStats(whole.GetIo())
	pod.Network = networkStats(whole.GetNetwork())
	if processes := countOf(whole.GetProcess().GetProcessCount()); processes != nil {
		pod.ProcessStats = &statsv1alpha1.ProcessStats{ProcessCount: processes}
	}
	total := s.pods[pod.PodRef.UID]
	if total == nil {
		total = &podTotal{}
		s.pods[pod.PodRef.UID] = total
	}
	used := total.updateTotal(live)
	sum := sumOf(pod.Containers)
	if pod.CPU == nil && sum.CPU != nil {
		pod.CPU = sum.CPU
		pod.CPU.UsageCoreNanoSeconds = &used
	}
	s.rates.addRate("sandbox/"+sandbox, pod.CPU)
	if pod.Memory == nil {
		pod.Memory = sum.Memory
	}
	pod.Swap = sum.Swap
}

// sandboxNetwork returns the traffic of a sandbox's network, through its process. A pod in the network of the machine has no traffic of its own.
func (s *Stats) sandboxNetwork(ctx context.Context, id string) *statsv1alpha1.NetworkStats {
	pid, known := s.pids[id]
	if !known {
		answer, err := s.config.Runtime.PodSandboxStatus(ctx, id, true)
		if err != nil {
			return nil // the sandbox may be gone; the next sample retries
		}
		pid = pidOf(answer)
		s.pids[id] = pid
	}
	if pid <= 0 {
		return nil
	}
	return s.machine.networkTraffic(metav1.Now(), fmt.Sprint(pid))
}

// pidOf returns the process ID of a sandbox with its own network, or -1.
func pidOf(answer *runtimeapi.PodSandboxStatusResponse) int {
	if answer.GetStatus().GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE {
		return -1
	}
	var info struct {
		PID int `json:"pid"`
	}
	if json.Unmarshal([]byte(answer.GetInfo()["info"]), &info) != nil || info.PID <= 0 {
		return -1
	}
	return info.PID
}

// forgetGone forgets pods and sandboxes that no longer exist.
func (s *Stats) forgetGone(sandboxes []*runtimeapi.PodSandbox) {
	pods, ids := map[string]bool{}, map[string]bool{}
	for _, sandbox := range sandboxes {
		pods[sandbox.GetMetadata().GetUid()], ids[sandbox.GetId()] = true, true
	}
	maps.DeleteFunc(s.pods, func(uid string, _ *podTotal) bool { return !pods[uid] })
	maps.DeleteFunc(s.pids, func(id string, _ int) bool { return !ids[id] })
}
