// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// findBeside records which pods of a list are beside a wanted pod under its name. keys are the keys of the
// listed pods. A pod of another UID is an orphan. A further instance of the wanted pod breaks the contract of
// CreatePod. The node cannot tell which instance is to stay, so it only reports them. findBeside returns these
// instances, because their statuses are not the status of the pod.
func (c *podCore) findBeside(ctx context.Context, backend []*corev1.Pod, keys []string, asked time.Time) (further map[*corev1.Pod]bool) {
	several := make(map[string][]*corev1.Pod)
	for _, key := range c.states.shared() {
		several[key] = nil // the other pod may be gone
	}
	first := make(map[string]bool, len(keys))
	for _, key := range keys {
		if first[key] {
			several[key] = nil
		}
		first[key] = true
	}
	if len(several) == 0 {
		return nil
	}
	for i, key := range keys {
		if pods, named := several[key]; named {
			several[key] = append(pods, backend[i])
		}
	}
	further = map[*corev1.Pod]bool{}
	for key, pods := range several {
		if api := c.pod(ctx, key); api != nil {
			c.noteBeside(ctx, key, api, pods, further, asked)
		}
	}
	return further
}

// noteBeside does the work of findBeside for the pods of one name.
func (c *podCore) noteBeside(ctx context.Context, key string, api *corev1.Pod, pods []*corev1.Pod, further map[*corev1.Pod]bool, asked time.Time) {
	st := c.states.get(key)
	known := &api.Status
	if st.report.matches(api.UID) {
		known = st.report.status
	}
	own, second := lifecycle.Instances(api.UID, known, pods)
	for _, pod := range second {
		further[pod] = true
	}
	others := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return lifecycle.SamePod(api, p) })
	var beside *corev1.Pod
	for _, pod := range others {
		if !lifecycle.Terminal(&pod.Status) && (beside == nil || pod.UID == st.orphan.UID) {
			beside = pod
		}
	}
	// The list proves nothing about a newer pod. A pod that is over or stopped needs no acceptance: it may have ended before this process began.
	before := !st.stopped && !st.isOver(api) && (!st.sent.Accepted || !st.sent.AcceptedAt.Before(asked))
	news := false
	c.states.evidence(key, api.UID, func(e *evidence) {
		if !before {
			e.beside = beside
		}
		e.shared = len(others) > 0 || len(pods) > 1 || e.shared && before
		news, e.doubled = len(second) > 0 && !e.doubled, len(second) > 0
	})
	if news {
		message := fmt.Sprintf("the backend runs %d instances of this pod (UID %s), and the node cannot tell which is to stay: it stops none of them before the pod is deleted; stop all but one at the backend", 1+len(second), own.UID)
		podLog(ctx, key, api.UID).Warn(message)
		c.recorder.Event(api, corev1.EventTypeWarning, eventSecondPod, message)
	}
	if beside != nil || st.beside != nil {
		c.syncLane.Add(key)
	}
}

// shared returns the keys of pods beside which the backend has another pod.
func (s *podStates) shared() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.m {
		if st.shared {
			keys = append(keys, key)
		}
	}
	return keys
}
