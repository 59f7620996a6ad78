// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// TestStatusOfEveryState checks that no state of Slurm makes a pod succeed, or gives a container the exit code
// 0, unless the pod's own status says so.
func TestStatusOfEveryState(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c"}}}}
	running := &podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}},
	}}}
	done := func(phase corev1.PodPhase, code int32, cause string) *podjob.Status {
		return &podjob.Status{Ended: true, Cause: cause, Pod: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}},
		}}}
	}
	for _, test := range []struct {
		state  string
		said   *podjob.Status
		phase  corev1.PodPhase
		reason string
		code   int32 // -1: none
		why    string
	}{
		{"PENDING", nil, corev1.PodPending, "", -1, ""},
		{"CONFIGURING", nil, corev1.PodPending, "", -1, ""},
		{"SOMETHING_NEW", nil, corev1.PodPending, "", -1, ""},
		{"RUNNING", running, corev1.PodRunning, "", -1, ""},
		{"COMPLETING", running, corev1.PodRunning, "", -1, ""},
		{"SUSPENDED", running, corev1.PodRunning, "", -1, ""},
		{"RUNNING", done(corev1.PodSucceeded, 0, ""), corev1.PodSucceeded, "", 0, ""},
		{"COMPLETED", done(corev1.PodSucceeded, 0, ""), corev1.PodSucceeded, "", 0, ""},
		{"COMPLETED", done(corev1.PodFailed, 7, ""), corev1.PodFailed, "", 7, ""},
		{"COMPLETED", running, corev1.PodFailed, "JobEnded", -1, ""},
		{"FAILED", running, corev1.PodFailed, "JobFailed", -1, ""},
		{"RUNNING", done(corev1.PodSucceeded, 0, "SIGTERM"), corev1.PodRunning, "", 0, ""},
		{"COMPLETING", done(corev1.PodFailed, 143, "SIGTERM"), corev1.PodRunning, "", 143, ""},
		{"CANCELLED", running, corev1.PodFailed, "JobCancelled", -1, ""},
		{"CANCELLED", done(corev1.PodFailed, 143, "SIGTERM"), corev1.PodFailed, "JobCancelled", 143, ""},
		{"CANCELLED", done(corev1.PodSucceeded, 0, "SIGTERM"), corev1.PodFailed, "JobCancelled", 0, ""},
		{"TIMEOUT", done(corev1.PodFailed, 143, "SIGTERM"), corev1.PodFailed, "DeadlineExceeded", 143, ""},
		{"TIMEOUT", running, corev1.PodFailed, "DeadlineExceeded", -1, ""},
		{"DEADLINE", nil, corev1.PodFailed, "DeadlineExceeded", -1, ""},
		{"NODE_FAIL", running, corev1.PodFailed, "NodeFail", -1, ""},
		{"BOOT_FAIL", nil, corev1.PodFailed, "BootFail", -1, ""},
		{"PREEMPTED", running, corev1.PodFailed, "Preempted", -1, ""},
		{"OUT_OF_MEMORY", running, corev1.PodFailed, "OutOfMemory", -1, ""},
		{"REVOKED", nil, corev1.PodFailed, "JobRevoked", -1, ""},
		{stateLost, running, corev1.PodFailed, "JobLost", -1, ""},
	} {
		got := statusOf(pod, queued{ID: 5, State: test.state, Reason: "Resources"}, test.said)
		if got.Phase != test.phase || got.Reason != test.reason {
			t.Errorf("%s: got %s %q, want %s %q", test.state, got.Phase, got.Reason, test.phase, test.reason)
		}
		var ended *corev1.ContainerStateTerminated
		if len(got.ContainerStatuses) == 1 {
			ended = got.ContainerStatuses[0].State.Terminated
		}
		switch {
		case test.code < 0 && ended != nil && ended.ExitCode == 0:
			t.Errorf("%s: the container ended with 0, which nobody said", test.state)
		case test.code >= 0 && (ended == nil || ended.ExitCode != test.code || test.why != "" && ended.Reason != test.why):
			t.Errorf("%s: the container is %+v, want exit code %d and reason %q", test.state, ended, test.code, test.why)
		}
		if test.code < 0 && test.said == running && got.Phase == corev1.PodFailed {
			if w := got.ContainerStatuses[0].State.Waiting; ended != nil || w == nil || w.Reason != "ContainerStatusUnknown" {
				t.Errorf("%s: the container is %+v, want an end that nobody knows", test.state, got.ContainerStatuses[0].State)
			}
		}
		if test.reason != "" && test.state != stateLost && got.Message != "job 5 of Slurm is "+test.state+": Resources" {
			t.Errorf("%s: message %q", test.state, got.Message)
		}
		if test.state == "PENDING" && got.Message != "job 5 of Slurm is PENDING: Resources" {
			t.Errorf("PENDING: message %q", got.Message)
		}
	}
}

// TestFinalStatusMayComeLate checks that the final status of an ended job may appear within a minute, whatever
// the time of its file.
func TestFinalStatusMayComeLate(t *testing.T) {
	p := home(&driver{place: place{root: t.TempDir()}, settle: time.Minute, pods: map[types.UID]*tracked{}})
	if err := p.place.use(); err != nil {
		t.Fatal(err)
	}
	stamp := time.Now()
	write := func(uid types.UID, ended bool, phase corev1.PodPhase) {
		t.Helper()
		path := filepath.Join(p.place.pod(uid), job.StatusFile)
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		if err := jsonfile.Write(path, podjob.Status{Ended: ended, Pod: corev1.PodStatus{Phase: phase}}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	for _, uid := range []types.UID{"late", "never"} {
		write(uid, false, corev1.PodRunning)
		p.pods[uid] = &tracked{id: identity{UID: uid}, job: queued{ID: 1, State: "RUNNING", Host: "n1"}}
	}
	unborn := &tracked{id: identity{UID: "unborn"}, job: queued{ID: 2, State: "CANCELLED", Host: "n/a"}}
	p.refresh(unborn)
	if got := p.Status(&corev1.Pod{}, &unborn.shown); got.Phase != corev1.PodFailed {
		t.Errorf("a job that had no node is %s, want the end at once: it has no words", got.Phase)
	}
	p.readFiles(t.Context())
	for _, s := range p.pods {
		s.job.State, s.stop = "COMPLETED", &stopping{until: time.Now().Add(time.Hour)}
		p.refresh(s)
	}
	p.forget(t.Context())
	for uid, s := range p.pods {
		if p.now(t, s).Phase != corev1.PodRunning {
			t.Errorf("%s is %s at once", uid, p.now(t, s).Phase)
		}
	}
	if len(p.pods) != 2 {
		t.Fatal("a pod is gone at once")
	}
	write("late", true, corev1.PodSucceeded)
	p.readFiles(t.Context())
	if got := p.now(t, p.pods["late"]).Phase; got != corev1.PodSucceeded {
		t.Errorf("the late one is %s", got)
	}
	p.pods["never"].overAt = time.Now().Add(-2 * time.Minute)
	p.readFiles(t.Context())
	p.report(t.Context())
	stamp = stamp.Add(time.Second)
	write("never", true, corev1.PodSucceeded) // too late
	p.readFiles(t.Context())
	if got := p.now(t, p.pods["never"]); got.Phase != corev1.PodFailed || got.Reason != "JobEnded" {
		t.Errorf("the one that never told is %s %s", got.Phase, got.Reason)
	}
}
