// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// TestBriefStatesAreNotTold: what Slurm says of a job on its way is told when it lasts, also if it changes all the time; what its pod says at once.
func TestBriefStatesAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		pod := &tracked{pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}, job: queued{ID: 7, State: "PENDING"}}
		p := &provider{pods: map[types.UID]*tracked{"u": pod}, notify: func(p *corev1.Pod) { told = append(told, string(p.Status.Phase)+" "+p.Status.Message) }}
		is := func(q queued, want ...string) {
			t.Helper()
			p.mu.Lock()
			pod.job = q
			p.refresh(pod)
			p.mu.Unlock()
			p.report()
			if fmt.Sprint(told) != fmt.Sprint(want) {
				t.Errorf("told %q, want %q", told, want)
			}
			told = nil
		}
		is(queued{ID: 7, State: "PENDING"})
		time.Sleep(lasting / 2)
		is(queued{ID: 7, State: "PENDING", Reason: "Priority"})
		time.Sleep(lasting / 2)
		is(queued{ID: 7, State: "PENDING", Reason: "Resources"}, "Pending job 7 of Slurm is PENDING: Resources")
		is(queued{ID: 7, State: "RUNNING"})
		pod.said = &job.Status{Pod: corev1.PodStatus{Phase: corev1.PodRunning}}
		is(queued{ID: 7, State: "RUNNING"}, "Running ")
		is(queued{ID: 7, State: "RUNNING"})
	})
	synctest.Test(t, func(t *testing.T) {
		told := 0
		pod := &tracked{pod: &corev1.Pod{}, job: queued{ID: 7, State: "CANCELLED"}}
		p := &provider{pods: map[types.UID]*tracked{"u": pod}, notify: func(*corev1.Pod) { told++ }}
		p.refresh(pod)
		if p.report(); told != 1 {
			t.Errorf("an end was told %d times", told)
		}
	})
}
