// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// A pod's status.observedGeneration says which spec the rest of the status is about. A kubelet makes both at once. A
// provider is told of a spec, and tells of the pod later, or never if nothing changes in its status. So the generation
// that it has accepted is published when something was told that is about it: a report of a pod with that generation, or
// the answer to a question that was asked afterwards.

const (
	// reflectWithin is how long a report may contradict the answer to a question before the generation is published all
	// the same: some backends answer in other words than they report.
	reflectWithin = 10 * time.Second
	// firstReflect is after how long a report that contradicts is looked at again for the first time.
	firstReflect = 100 * time.Millisecond
)

// agree compares the answer of a provider that reports with its last report. Where they agree, the report is about the
// generation that was accepted before the question; else a report is on its way. The answer itself is not published: it
// may be older than the report, and nothing would follow that puts it right.
func (p *podReports) agree(key string, api *corev1.Pod, answer *corev1.PodStatus, asked int64) {
	answer = answer.DeepCopy()
	redact.Status(answer, p.secrets.Values(api.UID))
	st := p.states.get(key)
	waited := time.Since(st.sent.AcceptedAt)
	switch {
	case st.sent.UID != api.UID, !st.report.matches(api.UID), st.reflected >= asked:
	case waited < reflectWithin && !equality.Semantic.DeepEqual(answer, st.report.status):
		p.pollLane.AddAfter(key, max(waited, firstReflect))
	default:
		p.unanswered(key, api, asked)
	}
}

// unanswered publishes the generation all the same: who cannot be asked, or has nothing to tell, must not hold it back.
func (p *podReports) unanswered(key string, api *corev1.Pod, asked int64) {
	if p.states.reflects(key, api.UID, asked) {
		p.statusLane.Add(key)
	}
}
