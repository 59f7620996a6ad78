// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// runs tracks the pods that a controller of the remote cluster recreates. In the home cluster they are one pod,
// and their restart counts add up.
type runs struct {
	of *Cluster

	mu    sync.Mutex
	known map[types.UID]*run // guarded by mu; keyed by the UID at home
}

// run is the latest of several remote pods that are one home pod.
type run struct {
	pod    *corev1.Pod      // the last seen remote pod
	before map[string]int32 // restart counts from before the run; nil: not read yet
	ended  bool             // the pod terminated before a deletion
}

// remakesPods reports whether a controller recreates lost pods.
func (c *Cluster) remakesPods() bool { return c.owners != nil && c.owners.kind.Remakes }

// isLeaving reports whether a remote pod is being deleted and will not be recreated. While its owner object
// remains, a deleted pod is recreated.
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
		for name, n := range restartsBefore(remote) { // recreated pods also have the annotation of their owner
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

// learnRestarts reads the restarts from before the start of this process from the home pod. The caller holds
// r.mu.
func (r *runs) learnRestarts(was *run) {
	at, uid := homeOf(was.pod)
	if home := r.of.homePod(at.Namespace, at.Name); was.before == nil && home != nil && home.UID == uid {
		was.before = missingRestarts(&home.Status, was.pod)
	}
}

// viewPod returns a remote pod with the status for the home pod, and the party that deletes it.
func (r *runs) viewPod(remote *corev1.Pod, by remover) (*corev1.Pod, remover) {
	at, uid := homeOf(remote)
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.known[uid]
	if !isOwner(remote) {
		if by == byNobodyKnows && !r.of.isLeaving(remote) {
			by = bySomebody // the controller recreates the pod
		}
		if was == nil || was.pod.UID != remote.UID {
			return remote, by
		}
		r.learnRestarts(was)
		return (&run{pod: remote, before: was.before}).withRestarts(), by
	}
	out := remote.DeepCopy()
	delete(out.Annotations, annotationRestarts) // the status already includes the restarts
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

// setPending changes the status to that of a pod that waits for its recreation.
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

// tellLate reports, once for each object, that the controller has not created the pod in time, because there is
// no other event.
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

// keepsObject reports whether to keep an owner object without a pod: its pod terminated by itself, or will be
// recreated. Otherwise the end of the pod is unknown, and the pod is lost. The controller recreates a pod if its
// restart policy allows a restart, because a deleted pod terminates, too.
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
