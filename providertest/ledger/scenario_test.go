// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// scenario is a history whose steps are one second apart.
type scenario struct {
	ledger.History
	now  time.Time
	seq  int64
	pods map[types.UID]*corev1.Pod
}

func tell(steps ...func(*scenario)) ledger.History {
	s := &scenario{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), pods: map[types.UID]*corev1.Pod{}}
	s.Forced = map[types.UID]bool{}
	for _, step := range steps {
		s.now = s.now.Add(time.Second)
		s.seq++
		step(s)
	}
	s.End = s.now.Add(time.Minute)
	return s.History
}

func (s *scenario) add(e ledger.Entry) {
	e.Seq, e.At, e.Namespace = s.seq, s.now, "d"
	if e.Name == "" {
		e.Name = "p"
	}
	s.Ledger = append(s.Ledger, e)
}

func start(uid types.UID, instance string) func(*scenario) {
	return func(s *scenario) { s.add(ledger.Entry{Verb: ledger.Start, UID: uid, Instance: instance}) }
}

func extra(uid types.UID, name, instance string) func(*scenario) {
	return func(s *scenario) {
		s.add(ledger.Entry{Verb: ledger.Start, UID: uid, Name: name, Instance: instance, Injected: true})
	}
}

func foreign(instance string) func(*scenario) {
	return func(s *scenario) {
		s.add(ledger.Entry{Verb: ledger.Start, UID: "x", Name: "x", Instance: instance, Injected: true, Foreign: true})
	}
}

func stop(uid types.UID, instance string) func(*scenario) {
	return func(s *scenario) { s.add(ledger.Entry{Verb: ledger.Stop, UID: uid, Instance: instance}) }
}

func destroy(uid types.UID, instance string) func(*scenario) {
	return func(s *scenario) {
		s.add(ledger.Entry{Verb: ledger.Delete, Step: ledger.Begin, UID: uid, Instance: instance})
	}
}

func rejects(uid types.UID) func(*scenario) {
	return func(s *scenario) {
		s.add(ledger.Entry{Verb: ledger.Create, Step: ledger.End, UID: uid, Err: "no such image", Rejected: true})
	}
}

func report(uid types.UID, status corev1.PodStatus) func(*scenario) {
	return func(s *scenario) { s.add(ledger.Entry{Verb: ledger.Report, UID: uid, Status: &status}) }
}

// has sets the state of the instance at the backend, reported or not.
func has(uid types.UID, status corev1.PodStatus) func(*scenario) {
	return func(s *scenario) { s.add(ledger.Entry{Verb: ledger.Status, UID: uid, Status: &status}) }
}

func later(d time.Duration) func(*scenario) { return func(s *scenario) { s.now = s.now.Add(d) } }

// show changes the pod in the API server.
func show(uid types.UID, change func(*corev1.Pod)) func(*scenario) {
	return func(s *scenario) {
		kind, pod := watch.Modified, s.pods[uid].DeepCopy()
		if pod == nil {
			kind = watch.Added
			pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: uid}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		}
		change(pod)
		s.pods[uid] = pod
		s.API = append(s.API, ledger.Event{Seq: s.seq, At: s.now, Type: kind, Pod: pod})
	}
}

// others changes the pod in the API server as a writer other than the node.
func others(uid types.UID, change func(*corev1.Pod)) func(*scenario) {
	return func(s *scenario) {
		before := s.pods[uid]
		after := before.DeepCopy()
		change(after)
		for _, w := range ledger.Writes(before, after, s.now) {
			w.Seq = s.seq
			s.Foreign = append(s.Foreign, w)
		}
		show(uid, change)(s)
	}
}

func exists(uid types.UID) func(*scenario) { return show(uid, func(*corev1.Pod) {}) }

func deleted(uid types.UID) func(*scenario) {
	return show(uid, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })
}

func removed(uid types.UID) func(*scenario) {
	return func(s *scenario) {
		s.API = append(s.API, ledger.Event{Seq: s.seq, At: s.now, Type: watch.Deleted, Pod: s.pods[uid]})
	}
}

func forced(uid types.UID) func(*scenario) {
	return func(s *scenario) { s.Forced[uid] = true; removed(uid)(s) }
}

func shows(uid types.UID, status corev1.PodStatus) func(*scenario) {
	return show(uid, func(p *corev1.Pod) { p.Status = status })
}

func failedBy(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }

// runningContainers and ended are statuses of one container.
func runningContainers(message string, restarts int32) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Message: message, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "c", RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}}
}

func ended(phase corev1.PodPhase, code int32) corev1.PodStatus {
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}},
	}}}
}

// endedRunning is the status of an ended pod whose container has not ended.
var endedRunning = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: runningContainers("", 0).ContainerStatuses}

func steps(s ...func(*scenario)) []func(*scenario) { return s }
