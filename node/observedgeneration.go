// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// A pod's status.observedGeneration names the spec behind the rest of the status. A kubelet writes both at once. A provider receives a
// spec, and reports the pod later, or never if the status does not change. So the node publishes the accepted generation only after a
// report of a pod with this generation, or after the answer to a later call.

const (
	// reflectWithin is the time for which a report may contradict the answer to a call before the generation is published anyway: some
	// backends use other texts in answers than in reports.
	reflectWithin = 10 * time.Second
	// firstReflect is the pause before a contradicting report is first compared again.
	firstReflect = 100 * time.Millisecond
)

// compareAnswer compares the answer of a provider that reports with its last report. If they agree, the report describes
// the generation that was accepted before the call; otherwise a report is on its way. The answer itself is not
// published: it may be older than the report, and no later report would correct it.
func (p *podReports) compareAnswer(key string, api *corev1.Pod, answer *corev1.PodStatus, asked int64) {
	answer = answer.DeepCopy()
	redact.Status(answer, p.secrets.Values(api.UID))
	st := p.states.get(key)
	waited := time.Since(st.sent.AcceptedAt)
	switch {
	case st.sent.UID != api.UID, !st.report.matches(api.UID), st.reflected >= asked:
	case waited < reflectWithin && !equality.Semantic.DeepEqual(answer, st.report.status):
		p.pollLane.AddAfter(key, max(waited, firstReflect))
	default:
		p.publishGeneration(key, api, asked)
	}
}

// publishGeneration publishes the generation anyway: a provider that does not answer, or has nothing to report, must not delay it.
func (p *podReports) publishGeneration(key string, api *corev1.Pod, asked int64) {
	if p.states.recordReflected(key, api.UID, asked) {
		p.statusLane.Add(key)
	}
}
