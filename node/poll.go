// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

const (
	// pollers is the number of pods that are polled at the same time; a hanging poll does not count.
	pollers = 10
)

// poller requests the status of single pods from the provider. It polls the pods of a provider that does not report by itself. It also
// polls pods that a reporting provider reported before a restart, or has not reported since a change of the pod.
type poller struct {
	*podCore
	backend *backend
	reports *podReports
}

// pollPod asks the provider for the status of one pod and handles the answer as a report. It processes the poll lane.
func (p *poller) pollPod(ctx context.Context, key string) (class int, err error) {
	api, st, term := p.pod(ctx, key), p.states.get(key), p.fence.Term()
	if api == nil || st.sent.UID != api.UID || !st.sent.Accepted {
		return 0, nil
	}
	if _, waits := p.fence.StandsBy(); waits || st.sharesName() {
		p.reports.publishGeneration(key, api, st.generation)
		return 0, nil // the backend may have an older pod of that name, and a status has no UID
	}
	status, err := p.askStatus(ctx, key, api)
	if term != p.fence.Term() {
		p.pollLane.Add(key) // an answer from an earlier term may be outdated
		return 0, nil
	}
	if now := p.states.get(key); now.sharesName() { // the backend showed the pod during the call
		p.reports.publishGeneration(key, api, st.generation)
		return 0, nil
	}
	return 0, p.takeAnswer(ctx, key, api, &st, status, err)
}

// askStatus requests the status of the pod. The status has no UID: until the backend has shown the pod, an end may be
// the end of the earlier pod.
func (p *poller) askStatus(ctx context.Context, key string, api *corev1.Pod) (*corev1.PodStatus, error) {
	status, err := p.backend.getPodStatus(ctx, api)
	if err != nil || status == nil {
		return nil, err
	}
	if !lifecycle.Terminal(status) || p.states.get(key).sent.Shown {
		return status, nil
	}
	pod, err := p.backend.getPod(ctx, key)
	switch {
	case err != nil && !errdefs.IsNotFound(err):
		return nil, err // poll again, because the end may be the end of another pod
	case err != nil, pod == nil:
	case !lifecycle.SamePod(api, pod):
		p.states.showOthers(key, api.UID, []*corev1.Pod{pod})
	case pod.Status.Phase == corev1.PodRunning:
		return nil, nil // the backend has just shown the pod
	}
	return status, nil
}

// takeAnswer handles the provider's answer about a pod. st is the state of the pod at the time of the call.
func (p *poller) takeAnswer(ctx context.Context, key string, api *corev1.Pod, st *podState, status *corev1.PodStatus, err error) error {
	reports, asked := p.backend.notifies && st.report.matches(api.UID), st.generation
	if err == nil && status != nil && status.Phase != "" {
		if reports {
			p.reports.compareAnswer(key, api, status, asked)
			return nil
		}
		p.reports.handleReport(ctx, api, &report{uid: api.UID, generation: asked, status: status.DeepCopy(), polled: true, after: st.report})
		if now := p.states.get(key); now.sent.UID == api.UID && now.reflected < asked {
			p.pollLane.Add(key) // a newer report has arrived
		}
		return nil
	}
	p.reports.publishGeneration(key, api, asked)
	switch {
	case errdefs.IsNotFound(err), err == nil && status == nil:
		p.suspectPod(key)
	case err != nil && reports:
		podLog(ctx, key, api.UID).WithError(err).Info("the provider does not answer how the pod is after a change; its reports tell")
	case err != nil:
		return newLaneError(api, "", fmt.Errorf("ask the provider for the status of pod %s: %w", key, err))
	}
	return nil
}

// pollAgain never retries a poll. It is the retry policy of the poll lane if every relist polls all pods again.
func pollAgain(_ context.Context, _ string, _ int, _ time.Time, err error) (*time.Duration, error) {
	return nil, err
}

// pollFailed handles failures of the poll lane.
func pollFailed(ctx context.Context, key string, err error, delay time.Duration, again bool) {
	logger := podLog(ctx, key, uidOf(err)).WithError(err)
	if again {
		logger.Warnf("the status of the pod stays as it was; next try in %v", delay)
	} else {
		logger.Warn("the status of the pod stays as it was until the next relist")
	}
}
