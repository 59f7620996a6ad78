// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/eviction"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

const (
	// pressureEvery is the interval of measurements of the machine.
	pressureEvery = 10 * time.Second
	// pressureTime bounds one check, with its actions.
	pressureTime = time.Minute
	// specTime is how long after the start a node under pressure waits for the specs of running pods.
	specTime = time.Minute
	// evictedTime is the longest wait for the end of an evicted pod before another pod must go.
	evictedTime = 30 * time.Second
)

// evictor notices when the machine runs short of a resource: it sets the conditions of the node, removes unused
// images, and then ends one pod after the other.
type evictor struct {
	r          *Runtime
	thresholds []eviction.Threshold
	summary    func(context.Context) (*statsv1alpha1.Summary, error)

	mu         sync.Mutex
	conditions []corev1.NodeConditionType // guarded by mu: the true conditions
	node       *corev1.Node               // guarded by mu: the node without them; nil before the first request
	notify     func(*corev1.Node)         // guarded by mu

	// owned by run
	began    time.Time
	pressure eviction.Pressure
	evicted  *worker // the last evicted pod
	until    time.Time
	told     map[types.UID]bool // evicted pods, whether they have ended or not
}

func newEvictor(r *Runtime) (*evictor, error) {
	thresholds, err := eviction.Parse(r.cfg.EvictionHard)
	if err != nil {
		return nil, errdefs.InvalidInputf("pod runtime: hard eviction: %v", err)
	}
	return &evictor{r: r, thresholds: thresholds, summary: r.stats.Summary, told: map[types.UID]bool{}}, nil
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
		e.reportConditions(e.pressure.Conditions())
	}
	if len(met) == 0 || err != nil || e.awaitsEnd() || e.awaitsSpecs() {
		return
	}
	e.r.nodeEvent(corev1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim "+string(met[0].Signal.Resource()))
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

// measureMachine returns the thresholds above the available amounts. An error beside a summary means that nothing is
// known about the pods.
func (e *evictor) measureMachine(ctx context.Context) ([]eviction.Met, *statsv1alpha1.Summary, error) {
	summary, err := e.summary(ctx)
	if summary == nil {
		return nil, nil, err
	}
	return observeMachine(&summary.Node).Met(e.thresholds), summary, err
}

// DefaultEvictionHard returns a value of Config.EvictionHard for a machine with other work, and with pods and
// images on the file system of root: a kubelet's thresholds, but at most 5 GiB and 250,000 inodes, and at most
// half of the amount that is available now. So an almost full machine evicts nothing for that reason.
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

// awaitsSpecs reports whether the specs of some pods of an earlier process are still missing: until they come,
// other pods would be evicted instead.
func (e *evictor) awaitsSpecs() bool {
	return time.Since(e.began) < specTime && slices.ContainsFunc(e.r.allWorkers(), func(w *worker) bool {
		pod := w.lastShown()
		return pod == nil || !podEnded(pod) && pod.Spec.NodeName == ""
	})
}

// awaitsEnd reports whether the last evicted pod is still ending: the freed resources are not visible yet.
func (e *evictor) awaitsEnd() bool {
	if e.evicted == nil || time.Now().After(e.until) || e.r.findWorker(e.evicted.uid) == nil || podEnded(e.evicted.lastShown()) {
		e.evicted = nil
	}
	return e.evicted != nil
}

func podEnded(pod *corev1.Pod) bool {
	return pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// evictPod ends the first pod of the rank. A pod without a sandbox waits, perhaps for room: it has nothing to give
// back.
func (e *evictor) evictPod(ctx context.Context, m eviction.Met, summary *statsv1alpha1.Summary) {
	maps.DeleteFunc(e.told, func(uid types.UID, _ bool) bool { return e.r.findWorker(uid) == nil })
	use := map[types.UID]*statsv1alpha1.PodStats{}
	for i := range summary.Pods {
		use[types.UID(summary.Pods[i].PodRef.UID)] = &summary.Pods[i]
	}
	var pods []eviction.Pod
	for _, w := range e.r.allWorkers() {
		if pod := w.lastShown(); !e.told[w.uid] && !podEnded(pod) && pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" && w.hasSandbox() {
			pods = append(pods, eviction.Pod{Pod: pod, Stats: use[w.uid]})
		}
	}
	slices.SortFunc(pods, func(a, b eviction.Pod) int { return a.Pod.CreationTimestamp.Compare(b.Pod.CreationTimestamp.Time) })
	ranked := eviction.Rank(pods, m.Signal.Resource())
	if len(ranked) == 0 {
		log.G(ctx).WithField("signal", string(m.Signal)).Warn("the machine has too little left, and no pod may be evicted")
		return
	}
	first := ranked[0]
	w := e.r.findWorker(first.Pod.UID)
	grace := evictionGrace
	reason := plan.Eviction{Reason: "Evicted", Message: m.Message() + first.Excess(m.Signal.Resource()), Grace: &grace, Disruption: true}
	if w != nil && w.changeInbox(func(in *inbox) { in.evict = &reason }) {
		e.evicted, e.until, e.told[w.uid] = w, time.Now().Add(evictedTime), true
	}
}

// lastShown returns the pod of the last report, nil if there was none. It must not be changed.
func (w *worker) lastShown() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shown
}

// currentConditions returns the true node conditions.
func (e *evictor) currentConditions() []corev1.NodeConditionType {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.conditions
}

// watchConditions calls notify whenever the conditions of the node change, and at once if there are any.
func (e *evictor) watchConditions(node *corev1.Node, notify func(*corev1.Node)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.node, e.notify = node, notify
	if notify != nil && len(e.conditions) > 0 {
		notify(underPressure(node, e.conditions, time.Now()))
	}
}

// reportConditions reports the true conditions.
func (e *evictor) reportConditions(conditions []corev1.NodeConditionType) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conditions = conditions
	if e.notify != nil {
		e.notify(underPressure(e.node, conditions, time.Now()))
	}
}

// underPressure returns the node with these conditions, in a kubelet's words.
func underPressure(node *corev1.Node, conditions []corev1.NodeConditionType, now time.Time) *corev1.Node {
	node = node.DeepCopy()
	for _, c := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Reason: "KubeletHasInsufficientMemory", Message: "kubelet has insufficient memory available"},
		{Type: corev1.NodeDiskPressure, Reason: "KubeletHasDiskPressure", Message: "kubelet has disk pressure"},
		{Type: corev1.NodePIDPressure, Reason: "KubeletHasInsufficientPID", Message: "kubelet has insufficient PID available"},
	} {
		if !slices.Contains(conditions, c.Type) {
			continue
		}
		c.Status, c.LastHeartbeatTime, c.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(now), metav1.NewTime(now)
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(old corev1.NodeCondition) bool { return old.Type == c.Type })
		node.Status.Conditions = append(node.Status.Conditions, c)
	}
	return node
}
