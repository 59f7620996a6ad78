// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// requestTimeout is the timeout of a request.
const requestTimeout = 10 * time.Second

// longestRefusal is the maximum pause before the agent retries a refused binding.
const longestRefusal = time.Minute

// runRound binds the waiting pods that fit. It uses the watch caches and the agent's own record of bindings, so
// rounds must not run concurrently.
func (s *scheduler) runRound(ctx context.Context) {
	s.settleBindings(ctx)
	waiting, bound := s.sortPods()
	if len(waiting) == 0 {
		return
	}
	candidates := newCandidates(s.targets, s.sourceNode, bound)
	inOrder(waiting)
	asked := map[*candidate]bool{}
	for _, pod := range waiting {
		if time.Now().Before(s.refused[pod.UID].until) {
			continue
		}
		for ctx.Err() == nil {
			best, why := chooseTarget(candidates, pod)
			if best == nil {
				s.explainWait(ctx, pod, why)
				break
			}
			if !asked[best] { // once per round
				asked[best] = true
				if err := best.target.checkAlive(ctx); err != nil {
					best.away = err.Error()
					continue
				}
			}
			err := s.bindPod(ctx, pod, best.target.Node)
			if isRefusal(err) { // a refused pod uses no resources
				s.recordRefusal(ctx, pod, best.target.Node, err)
				break
			}
			best.takePod(pod, nil) // also if the outcome is unknown: the next round checks it
			if err != nil {
				log.G(ctx).WithError(err).WithField("pod", pod.Namespace+"/"+pod.Name).Warn("The pod was not bound; the next round tries again")
				time.AfterFunc(retryAfter, s.requestRound)
			}
			break
		}
	}
}

// sortPods returns the waiting pods, and the bound pods by node.
func (s *scheduler) sortPods() (waiting []*corev1.Pod, bound map[string][]*corev1.Pod) {
	bound = map[string][]*corev1.Pod{}
	seen := map[types.UID]bool{}
	for _, o := range s.podInformer.GetStore().List() {
		pod := o.(*corev1.Pod)
		seen[pod.UID] = true
		node := pod.Spec.NodeName
		if node == "" {
			node = s.assumed[pod.UID]
		} else {
			delete(s.assumed, pod.UID)
		}
		switch {
		case node != "":
			bound[node] = append(bound[node], pod)
		case isWaiting(pod):
			waiting = append(waiting, pod)
		}
	}
	// Pods that are not in the cache have been deleted or have ended.
	maps.DeleteFunc(s.assumed, func(uid types.UID, _ string) bool { return !seen[uid] })
	maps.DeleteFunc(s.explained, func(uid types.UID, _ explanation) bool { return !seen[uid] })
	maps.DeleteFunc(s.refused, func(uid types.UID, _ refusal) bool { return !seen[uid] })
	return waiting, bound
}

// sourceNode returns a node of the source cluster, or nil if there is none with this name.
func (s *scheduler) sourceNode(name string) *corev1.Node {
	o, found, err := s.nodeInformer.GetStore().GetByKey(name)
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.Node)
}

// bindPod binds a pod to a node. If the outcome is unknown after an error, the pod counts as bound until
// settleBindings has checked it.
func (s *scheduler) bindPod(ctx context.Context, pod *corev1.Pod, node string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err == nil {
		s.assumed[pod.UID] = node
		s.events.Eventf(pod, corev1.EventTypeNormal, "Scheduled", "Elected %s for %s/%s", node, pod.Namespace, pod.Name)
		return nil
	}
	if isRefusal(err) {
		return err
	}
	// The outcome is unknown: the API server may have bound the pod before a timeout or an error of a proxy.
	s.assumed[pod.UID], s.doubtful[pod.UID] = node, pod
	return err
}

// isRefusal reports whether the error means that the API server has not bound the pod and would refuse the same
// request again.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// refusal is the pause after a refused binding.
type refusal struct {
	until time.Time
	wait  time.Duration
}

// recordRefusal writes the refusal to the status of the pod and starts a pause. The pause doubles with each
// refusal.
func (s *scheduler) recordRefusal(ctx context.Context, pod *corev1.Pod, node string, err error) {
	wait := min(max(2*s.refused[pod.UID].wait, retryAfter), longestRefusal)
	s.refused[pod.UID] = refusal{time.Now().Add(wait), wait}
	time.AfterFunc(wait, s.requestRound)
	log.G(ctx).WithError(err).WithField("pod", pod.Namespace+"/"+pod.Name).Warn("The API server refuses to bind the pod")
	s.explainWait(ctx, pod, fmt.Sprintf("%s takes the pod, and the API server refuses to bind it: %v", node, err))
}

// settleBindings checks the outcome of doubtful bindings.
func (s *scheduler) settleBindings(ctx context.Context) {
	for uid, pod := range s.doubtful {
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		now, err := s.client.CoreV1().Pods(pod.Namespace).Get(bounded, pod.Name, metav1.GetOptions{})
		cancel()
		switch {
		case apierrors.IsNotFound(err), err == nil && (now.UID != uid || now.Spec.NodeName == ""):
			delete(s.assumed, uid)
		case err != nil:
			time.AfterFunc(retryAfter, s.requestRound)
			continue
		default:
			s.assumed[uid] = now.Spec.NodeName
		}
		delete(s.doubtful, uid)
	}
}

// amountsEvery is the minimum interval for updates of an explanation in which only numbers have changed.
const amountsEvery = time.Minute

// explanation is a written reason why a pod waits.
type explanation struct {
	text string
	at   time.Time
}

// isUnchanged reports whether why does not have to be written. Within amountsEvery it ignores numbers, which
// change in almost every round.
func (e explanation) isUnchanged(why string) bool {
	return e.text == why || time.Since(e.at) < amountsEvery && withoutNumbers(e.text) == withoutNumbers(why)
}

func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// explainWait writes the reason why a pod waits to its status, if the reason has changed.
func (s *scheduler) explainWait(ctx context.Context, pod *corev1.Pod, why string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && (explanation{c.Message, c.LastTransitionTime.Time}).isUnchanged(why) {
			return
		}
	}
	if s.explained[pod.UID].isUnchanged(why) { // the watch is late
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why, LastTransitionTime: metav1.Now()}}},
	})
	if err == nil {
		_, err = s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		log.G(ctx).WithError(err).WithField("pod", pod.Namespace+"/"+pod.Name).Warn("Why the pod waits is not in its status")
		return
	}
	s.explained[pod.UID] = explanation{why, time.Now()}
	s.events.Event(pod, corev1.EventTypeWarning, "FailedScheduling", why)
}
