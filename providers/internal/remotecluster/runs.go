// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// runs remembers the pods that a controller of the remote cluster remakes: for home all of them are one pod,
// whose restarts add up.
type runs struct {
	of *Cluster

	mu    sync.Mutex
	known map[types.UID]*run // guarded by mu; by the UID at home
}

// run is one of several pods that are one pod for home.
type run struct {
	pod    *corev1.Pod      // the last seen state
	before map[string]int32 // restarts of containers before the run; nil: home was not asked yet
	ended  bool             // the run ended by itself: terminal before a removal
}

// remakesPods reports whether the remote cluster remakes lost pods.
func (c *Cluster) remakesPods() bool { return c.owners != nil && c.owners.kind.Remakes }

// isLeaving reports whether a remote pod will be gone for good. A removed pod with a remaining owner object comes
// back.
func (c *Cluster) isLeaving(there *corev1.Pod) bool {
	if !c.remakesPods() {
		return there.DeletionTimestamp != nil
	}
	owner := there
	if !isOwner(there) {
		owner = c.cache.findOwner(there.Namespace, there.Name)
	}
	return owner == nil || owner.DeletionTimestamp != nil
}

// recordPod records a remote pod.
func (r *runs) recordPod(remote *corev1.Pod) {
	if !r.of.remakesPods() || isOwner(remote) {
		return
	}
	_, uid := homeOf(remote)
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.known[uid]
	switch {
	case was == nil:
		was = &run{pod: remote}
		if r.known == nil {
			r.known = map[types.UID]*run{}
		}
		r.known[uid] = was
	case was.pod.UID != remote.UID:
		r.learnRestarts(was)
		s := Status(was.withRestarts(), byHome)
		was.before, was.ended = restartsOf(&s), false
		for name, n := range restartsBefore(remote) { // the next pod of the same object has these restarts, too
			was.before[name] = max(was.before[name]-n, 0)
		}
	}
	was.pod = remote
	was.ended = was.ended || isTerminal(remote.Status.Phase) && remote.DeletionTimestamp == nil
}

func (r *runs) forgetPod(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, uid)
}

// learnRestarts takes the restarts from before the start of this process from the pod at home. The caller holds r.mu.
func (r *runs) learnRestarts(was *run) {
	at, uid := homeOf(was.pod)
	if home := r.of.homePod(at.Namespace, at.Name); was.before == nil && home != nil && home.UID == uid {
		was.before = missingRestarts(&home.Status, was.pod)
	}
}

// viewPod returns a remote pod as home must see it, and the party that removes it.
func (r *runs) viewPod(remote *corev1.Pod, by remover) (*corev1.Pod, remover) {
	at, uid := homeOf(remote)
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.known[uid]
	if !isOwner(remote) {
		if by == byNobodyKnows && !r.of.isLeaving(remote) {
			by = bySomebody // the pod comes back
		}
		if was == nil || was.pod.UID != remote.UID {
			return remote, by
		}
		r.learnRestarts(was)
		return (&run{pod: remote, before: was.before}).withRestarts(), by
	}
	out := remote.DeepCopy()
	delete(out.Annotations, annotationRestarts) // the status has the restarts
	switch home := r.of.homePod(at.Namespace, at.Name); {
	case was != nil:
		r.learnRestarts(was)
		out.Status = Status(was.withRestarts(), byHome)
		if was.ended {
			return out, byHome
		}
	case home != nil && home.UID == uid:
		home.Status.DeepCopyInto(&out.Status)
		if isTerminal(home.Status.Phase) {
			return out, byHome
		}
	default:
		out.Status = corev1.PodStatus{}
	}
	setPending(out)
	return out, byHome
}

// setPending gives the pod the status of a pod that does not exist yet.
func setPending(pod *corev1.Pod) {
	s := &pod.Status
	s.Reason, s.Message = "", ""
	if isTerminal(s.Phase) {
		s.Phase = corev1.PodRunning
	}
	if s.Phase != corev1.PodRunning {
		s.Phase = corev1.PodPending
	}
	if time.Since(pod.CreationTimestamp.Time) > shownWithin {
		s.Message = "the controller of the remote cluster has not made the pod of " + pod.Kind + " " + podKey(pod)
	}
	for i := range s.Conditions {
		if c := &s.Conditions[i]; (c.Type == corev1.PodReady || c.Type == corev1.ContainersReady) && c.Status == corev1.ConditionTrue {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionFalse, reasonRemoved, metav1.Now()
		}
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if c := &list[i]; c.State.Running != nil {
				c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reasonRemoved}}
				c.Ready, c.Started = false, nil
			}
		}
	}
}

// tellLate reports, once for each object, that the controller made no pod in time: no other event would report
// it.
func (c *Cluster) tellLate() {
	if !c.remakesPods() {
		return
	}
	for _, remote := range c.cache.allPods() {
		if !isOwner(remote) || remote.DeletionTimestamp != nil || time.Since(remote.CreationTimestamp.Time) <= shownWithin {
			continue
		}
		_, uid := homeOf(remote)
		c.mu.Lock()
		told := c.late[uid]
		c.late[uid] = true
		c.mu.Unlock()
		if !told {
			c.reportPod(remote)
		}
	}
}

// keepsObject reports whether to keep an object without a pod: its pod ended by itself, or will be made again.
// Otherwise the end of the pod is unknown, and the pod is lost like any other. A controller makes pods that
// restart again, however they ended, because a removed pod ends, too.
func (r *runs) keepsObject(owner *corev1.Pod) bool {
	if !r.of.remakesPods() {
		return false
	}
	at, uid := homeOf(owner)
	switch policy := owner.Spec.RestartPolicy; {
	case !isTerminal(owner.Status.Phase), policy == corev1.RestartPolicyAlways,
		policy == corev1.RestartPolicyOnFailure && owner.Status.Phase == corev1.PodFailed:
		return true
	}
	if home := r.of.homePod(at.Namespace, at.Name); home != nil && home.UID == uid && isTerminal(home.Status.Phase) {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.known[uid]
	return was != nil && was.ended
}
