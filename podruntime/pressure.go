// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/eviction"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

const (
	// pressureEvery is the interval of measurements of the machine.
	pressureEvery = 10 * time.Second
	// pressureTime bounds one check and its actions.
	pressureTime = time.Minute
	// specTime is how long a node under pressure waits after its start for the specs of running pods.
	specTime = time.Minute
	// evictedTime is the longest wait for the end of an evicted pod before the next eviction.
	evictedTime = 30 * time.Second
)

// evictor handles a shortage of the machine's resources: it sets the conditions of the node, removes unused images, and then evicts pods one by one.
type evictor struct {
	thresholds []eviction.Threshold
	workers    *workers
	events     events
	conditions *nodeConditions
	collector  *image.Collector
	meter      *meter
	summary    func(context.Context) (*statsv1alpha1.Summary, error)

	// owned by run
	began    time.Time
	pressure eviction.Pressure
	evicted  *worker // the last evicted pod
	until    time.Time
	told     map[types.UID]bool // evicted pods, including ended ones
}

func newEvictor(cfg Config, w *workers, u *usage, c *image.Collector) (*evictor, error) {
	thresholds, err := eviction.Parse(cfg.EvictionHard)
	if err != nil {
		return nil, errdefs.InvalidInputf("pod runtime: hard eviction: %v", err)
	}
	return &evictor{
		thresholds: thresholds, workers: w, events: w.exec.events, conditions: w.conditions, collector: c, meter: w.meter, summary: u.stats.Summary,
		told: map[types.UID]bool{},
	}, nil
}

// run measures the machine until ctx ends.
func (e *evictor) run(ctx context.Context) {
	if len(e.thresholds) == 0 {
		return
	}
	e.began = time.Now()
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, pressureTime)
		e.checkPressure(bounded)
		cancel()
		select {
		case <-time.After(pressureEvery):
		case <-ctx.Done():
		}
	}
}

func (e *evictor) checkPressure(ctx context.Context) {
	begin := time.Now()
	met, summary, err := e.measureMachine(ctx)
	if summary == nil {
		log.G(ctx).WithError(err).Warn("the machine cannot be measured, so nothing is evicted; it is tried again")
		return
	}
	if e.pressure.Update(met, time.Now()) {
		e.conditions.report(e.pressure.Conditions())
	}
	if len(met) == 0 || err != nil || e.awaitsEnd() || e.awaitsSpecs() {
		return
	}
	e.events.recordNode(corev1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim "+string(met[0].Signal.Resource()))
	if met[0].Signal.Condition() == corev1.NodeDiskPressure {
		met, summary, err = e.freeDisk(ctx)
		if len(met) > 0 && err == nil && met[0].Signal.Condition() == corev1.NodeDiskPressure {
			met, summary, err = e.awaitFigures(ctx, begin)
		}
		if err != nil {
			log.G(ctx).WithError(err).Warn("the disk is full, and the use of the disk by pods cannot be measured; trying again")
		}
		if len(met) == 0 || err != nil {
			return
		}
	}
	e.evictPod(ctx, met[0], summary)
}

// measureMachine returns the thresholds above the available amounts. An error with a summary means that the state of the pods is unknown.
func (e *evictor) measureMachine(ctx context.Context) ([]eviction.Met, *statsv1alpha1.Summary, error) {
	summary, err := e.summary(ctx)
	if summary == nil {
		return nil, nil, err
	}
	return observeMachine(&summary.Node).Met(e.thresholds), summary, err
}

// DefaultEvictionHard returns a value of Config.EvictionHard for a machine with other workloads, whose pods and images are on the file system of
// root: a kubelet's thresholds, but at most 5 GiB and 250,000 inodes, and at most half of the currently available amount. So an already full disk
// alone does not cause evictions.
func DefaultEvictionHard(root string) map[string]string {
	now := observeMachine(stats.Machine(root))
	for images, node := range map[eviction.Signal]eviction.Signal{
		eviction.ImageFsAvailable: eviction.NodeFsAvailable, eviction.ImageFsInodesFree: eviction.NodeFsInodesFree,
	} {
		if seen, measured := now[node]; measured {
			now[images] = seen
		}
	}
	return eviction.Default(now)
}

// observeMachine returns the available resources of the machine.
func observeMachine(n *statsv1alpha1.NodeStats) eviction.Observations {
	seen := eviction.Observations{}
	note := func(s eviction.Signal, available, capacity *uint64) {
		if available != nil && capacity != nil {
			seen[s] = eviction.Observation{Available: *available, Capacity: *capacity}
		}
	}
	if m := n.Memory; m != nil && m.AvailableBytes != nil && m.WorkingSetBytes != nil {
		all := *m.AvailableBytes + *m.WorkingSetBytes
		note(eviction.MemoryAvailable, m.AvailableBytes, &all)
	}
	if fs := n.Fs; fs != nil {
		note(eviction.NodeFsAvailable, fs.AvailableBytes, fs.CapacityBytes)
		note(eviction.NodeFsInodesFree, fs.InodesFree, fs.Inodes)
	}
	if n.Runtime != nil && n.Runtime.ImageFs != nil {
		note(eviction.ImageFsAvailable, n.Runtime.ImageFs.AvailableBytes, n.Runtime.ImageFs.CapacityBytes)
		note(eviction.ImageFsInodesFree, n.Runtime.ImageFs.InodesFree, n.Runtime.ImageFs.Inodes)
	}
	if r := n.Rlimit; r != nil && r.MaxPID != nil && r.NumOfRunningProcesses != nil && *r.MaxPID > 0 {
		all, free := uint64(*r.MaxPID), uint64(max(*r.MaxPID-*r.NumOfRunningProcesses, 0)) //nolint:gosec // neither is negative
		note(eviction.PIDAvailable, &free, &all)
	}
	return seen
}

// awaitsSpecs reports whether the specs of some pods of an earlier process are still missing: without them, other pods would be evicted instead.
func (e *evictor) awaitsSpecs() bool {
	return time.Since(e.began) < specTime && slices.ContainsFunc(e.workers.allWorkers(), func(w *worker) bool {
		pod := w.report.lastPod()
		return pod == nil || !podEnded(pod) && pod.Spec.NodeName == ""
	})
}

// awaitsEnd reports whether the last evicted pod is still ending: its resources are not free yet.
func (e *evictor) awaitsEnd() bool {
	if e.evicted == nil || time.Now().After(e.until) || e.workers.findWorker(e.evicted.id.uid) == nil || podEnded(e.evicted.report.lastPod()) {
		e.evicted = nil
	}
	return e.evicted != nil
}

func podEnded(pod *corev1.Pod) bool {
	return pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// evictPod evicts the first pod of the ranking. It skips a pod without a sandbox, which uses no resources.
func (e *evictor) evictPod(ctx context.Context, m eviction.Met, summary *statsv1alpha1.Summary) {
	maps.DeleteFunc(e.told, func(uid types.UID, _ bool) bool { return e.workers.findWorker(uid) == nil })
	use := map[types.UID]*statsv1alpha1.PodStats{}
	for i := range summary.Pods {
		use[types.UID(summary.Pods[i].PodRef.UID)] = &summary.Pods[i]
	}
	var pods []eviction.Pod
	for _, w := range e.workers.allWorkers() {
		if pod := w.report.lastPod(); !e.told[w.id.uid] && !podEnded(pod) && pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" && w.report.hasSandboxes() {
			pods = append(pods, eviction.Pod{Pod: pod, Stats: use[w.id.uid]})
		}
	}
	slices.SortFunc(pods, func(a, b eviction.Pod) int { return a.Pod.CreationTimestamp.Compare(b.Pod.CreationTimestamp.Time) })
	ranked := eviction.Rank(pods, m.Signal.Resource())
	if len(ranked) == 0 {
		log.G(ctx).WithField("signal", string(m.Signal)).Warn("the machine has too little left, and no pod may be evicted")
		return
	}
	first := ranked[0]
	w := e.workers.findWorker(first.Pod.UID)
	grace := evictionGrace
	reason := plan.Eviction{Reason: "Evicted", Message: m.Message() + first.Excess(m.Signal.Resource()), Grace: &grace, Disruption: true}
	if w != nil && w.mail.putInput(func(in *inbox) { in.evict = &reason }) {
		e.evicted, e.until, e.told[w.id.uid] = w, time.Now().Add(evictedTime), true
	}
}
