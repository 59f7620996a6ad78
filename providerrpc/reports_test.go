// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

func report(uid string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
	p.UID = types.UID(uid)
	return p
}

// taken returns the reports that a watch gets now.
func taken(t *testing.T, r *reports, q *queue) (all []string) {
	t.Helper()
	for _, data := range r.takeReports(q) {
		p := &corev1.Pod{}
		if err := wire.Unmarshal(encoding, data, p); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(p.UID)+" "+string(p.Status.Phase))
	}
	return all
}

// TestReportsOutliveConnections checks that the next node gets the undelivered reports: the latest of each pod,
// in order.
func TestReportsOutliveConnections(t *testing.T) {
	r := newReports()
	r.acceptReport(report("early", corev1.PodRunning))
	r.acceptReport(report("other", corev1.PodRunning))
	r.acceptReport(report("early", corev1.PodSucceeded))
	q := r.openWatch()
	if got, want := taken(t, r, q), []string{"early Succeeded", "other Running"}; !slices.Equal(got, want) {
		t.Errorf("before anybody listened: got %q, want %q", got, want)
	}
	r.acceptReport(report("other", corev1.PodFailed))
	r.endWatch(q)
	r.acceptReport(report("late", corev1.PodFailed))
	q = r.openWatch()
	if got, want := taken(t, r, q), []string{"other Failed", "late Failed"}; !slices.Equal(got, want) {
		t.Errorf("of a connection that broke, and after it: got %q, want %q", got, want)
	}
	second := r.openWatch()
	r.acceptReport(report("both", corev1.PodRunning))
	for _, each := range []*queue{q, second} {
		if got, want := taken(t, r, each), []string{"both Running"}; !slices.Equal(got, want) {
			t.Errorf("two nodes: got %q, want %q", got, want)
		}
	}
}
