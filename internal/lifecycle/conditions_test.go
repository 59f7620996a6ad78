// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// said returns a condition with the fields that these tests compare.
func said(t corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: status, Reason: reason}
}

// TestConditionsFollowTheReport holds that the provider's condition has precedence, else the condition follows from the reported containers
// or from the reported condition Ready.
func TestConditionsFollowTheReport(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	waits := func(name string) corev1.ContainerStatus { return container(named(name), waiting) }
	type conditions = []corev1.PodCondition
	for _, tt := range []struct {
		name       string
		pod        podOpt
		before     conditions
		phase      corev1.PodPhase // "": Running
		containers []corev1.ContainerStatus
		reported   conditions
		infeasible string
		want       map[corev1.PodConditionType]string // in addition to PodScheduled
	}{
		{name: "nothing", want: map[corev1.PodConditionType]string{}},
		{name: "a condition of its own", reported: conditions{said("own", yes, "")}, want: map[corev1.PodConditionType]string{"own": "True", "Initialized": "True"}},
		{name: "a condition of its own, changed", pod: func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}} }, before: conditions{said("own", yes, "")}, reported: conditions{said("own", no, "Why")},
			want: map[corev1.PodConditionType]string{"own": "False Why", "Initialized": "True"}},
		{name: "a container that is ready", containers: []corev1.ContainerStatus{container()},
			want: map[corev1.PodConditionType]string{"Initialized": "True", "ContainersReady": "True", "Ready": "True"}},
		{name: "one that is ready and one that is not", pod: func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d"}) },
			containers: []corev1.ContainerStatus{container(), waits("d")}, want: map[corev1.PodConditionType]string{"Initialized": "True",
				"ContainersReady": "False ContainersNotReady: containers not ready: d", "Ready": "False ContainersNotReady: containers not ready: d"}},
		{name: "one that is not told of", containers: []corev1.ContainerStatus{container(named("d"))}, want: map[corev1.PodConditionType]string{"Initialized": "True",
			"ContainersReady": "False ContainersNotReady: containers not ready: c", "Ready": "False ContainersNotReady: containers not ready: c"}},
		{name: "a container that is not ready, and a gate", pod: func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}} },
			containers: []corev1.ContainerStatus{waits("c")}, want: map[corev1.PodConditionType]string{"Initialized": "True",
				"ContainersReady": "False ContainersNotReady: containers not ready: c", "Ready": "False ContainersNotReady: containers not ready: c"}},
		{name: "a gate that is closed", pod: func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}} },
			before: conditions{said("gate", no, "")}, containers: []corev1.ContainerStatus{container()}, want: map[corev1.PodConditionType]string{"gate": "False",
				"Initialized": "True", "ContainersReady": "True", "Ready": `False ReadinessGatesNotReady: readiness gate "gate" is False`}},
		{name: "its word on each", containers: []corev1.ContainerStatus{container()},
			reported: conditions{said(corev1.PodInitialized, no, "I"), said(corev1.ContainersReady, no, "C"), said(corev1.PodReady, no, "R")},
			want:     map[corev1.PodConditionType]string{"Initialized": "False I", "ContainersReady": "False C", "Ready": "False R"}},
		{name: "its word on the pod, and nothing of the containers", reported: conditions{{Type: corev1.PodReady, Status: no, Reason: "R", Message: "m"}},
			want: map[corev1.PodConditionType]string{"Initialized": "True", "ContainersReady": "False R: m", "Ready": "False R: m"}},
		{name: "it has succeeded", phase: corev1.PodSucceeded, containers: []corev1.ContainerStatus{container(exited(0))},
			pod: func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}} }, reported: conditions{said(corev1.PodReady, yes, "")},
			want: map[corev1.PodConditionType]string{"Initialized": "True PodCompleted", "ContainersReady": "False PodCompleted", "Ready": "False PodCompleted"}},
		{name: "it has failed, and is said to be ready", phase: corev1.PodFailed, containers: []corev1.ContainerStatus{container(exited(1))},
			reported: conditions{said(corev1.ContainersReady, yes, ""), said(corev1.PodReady, yes, "")},
			want:     map[corev1.PodConditionType]string{"Initialized": "True", "ContainersReady": "False PodFailed", "Ready": "False PodFailed"}},
		{name: "init containers that are not done", pod: func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}, {Name: "j"}} }, reported: conditions{said("own", yes, "")},
			want: map[corev1.PodConditionType]string{"own": "True", "Initialized": "False ContainersNotInitialized: init containers not done: i, j"}},
		{name: "a change of resources that the backend does not make", infeasible: "no", want: map[corev1.PodConditionType]string{"PodResizePending": "True Infeasible: no"}},
		{name: "the same, of a pod that has ended", infeasible: "no", phase: corev1.PodFailed,
			want: map[corev1.PodConditionType]string{"ContainersReady": "False PodFailed", "Ready": "False PodFailed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := pod("a", func(p *corev1.Pod) { p.Status.Conditions = tt.before })
			if tt.pod != nil {
				tt.pod(api)
			}
			report := &corev1.PodStatus{Phase: tt.phase, ContainerStatuses: tt.containers, Conditions: tt.reported}
			if report.Phase == "" {
				report.Phase = corev1.PodRunning
			}
			view := View{API: api, Report: report, Infeasible: tt.infeasible}
			_, after := publish(t, view)
			want := maps.Clone(tt.want)
			want[corev1.PodScheduled] = "True"
			if d := cmp.Diff(want, briefConditions(after)); d != "" {
				t.Errorf("(-want +got): %s", d)
			}
			view.API, view.Now = after, now.Add(time.Minute)
			if w, status := Publish(view); w != Keep {
				t.Errorf("a minute later: %s", cmp.Diff(after.Status, status))
			}
		})
	}
}

// briefConditions returns the conditions of the pod by type: status, reason and message.
func briefConditions(pod *corev1.Pod) map[corev1.PodConditionType]string {
	brief := map[corev1.PodConditionType]string{}
	for _, c := range pod.Status.Conditions {
		s := string(c.Status)
		if c.Reason != "" {
			s += " " + c.Reason
		}
		if c.Message != "" {
			s += ": " + c.Message
		}
		brief[c.Type] = s
	}
	return brief
}

// TestScheduledIsTheSchedulers holds that the condition PodScheduled is not changed, unless no scheduler has set it.
func TestScheduledIsTheSchedulers(t *testing.T) {
	report := runningStatus()
	report.Conditions = []corev1.PodCondition{said(corev1.PodScheduled, corev1.ConditionFalse, "Provider")}
	for want, api := range map[string]*corev1.Pod{
		"False Provider": pod("a"),
		"True Scheduler": pod("a", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{said(corev1.PodScheduled, corev1.ConditionTrue, "Scheduler")}
		}),
	} {
		if _, after := publish(t, View{API: api, Report: report}); briefConditions(after)[corev1.PodScheduled] != want {
			t.Errorf("got %q, want %q", briefConditions(after)[corev1.PodScheduled], want)
		}
	}
}

// TestInitContainersThatAreDone holds that an init container is done after exit code 0, and a sidecar when it has started.
func TestInitContainersThatAreDone(t *testing.T) {
	always, never := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	started := func(s bool) func(*corev1.ContainerStatus) {
		return func(c *corev1.ContainerStatus) { c.Started = &s }
	}
	for _, tt := range []struct {
		name   string
		policy *corev1.ContainerRestartPolicy
		status corev1.ContainerStatus
		want   corev1.ConditionStatus
	}{
		{"it runs", nil, container(), corev1.ConditionFalse},
		{"it has exited", nil, container(exited(0)), corev1.ConditionTrue},
		{"it has failed", nil, container(exited(1)), corev1.ConditionFalse},
		{"one with a policy of its own has exited", &never, container(exited(0)), corev1.ConditionTrue},
		{"one with a policy of its own runs", &never, container(), corev1.ConditionFalse},
		{"a sidecar has started", &always, container(started(true)), corev1.ConditionTrue},
		{"a sidecar has started, and restarts", &always, container(waiting, started(true)), corev1.ConditionTrue},
		{"a sidecar runs, and has not started", &always, container(started(false)), corev1.ConditionFalse},
		{"a sidecar runs, and nobody says whether it has started", &always, container(), corev1.ConditionTrue},
		{"a sidecar waits", &always, container(waiting), corev1.ConditionFalse},
		{"a sidecar has exited", &always, container(exited(0)), corev1.ConditionFalse},
	} {
		api := pod("a", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", RestartPolicy: tt.policy}}
		})
		report := runningStatus()
		named("i")(&tt.status)
		report.InitContainerStatuses = []corev1.ContainerStatus{container(named("other"), waiting), tt.status}
		_, after := publish(t, View{API: api, Report: report})
		if c := condition(after.Status.Conditions, corev1.PodInitialized); c.Status != tt.want {
			t.Errorf("%s: got %+v, want %s", tt.name, c, tt.want)
		}
	}
}

// TestTransitionTimeChangesWithTheStatus holds that the transition time changes only with the status.
func TestTransitionTimeChangesWithTheStatus(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.Time{Time: now.Add(time.Duration(minutes) * time.Minute)} }
	probed := func(status corev1.ConditionStatus, probe metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: "own", Status: status, LastProbeTime: probe, ObservedGeneration: 7}
	}
	report := &corev1.PodStatus{Phase: corev1.PodRunning}
	_, after := publish(t, View{API: pod("a", func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: "own", Status: corev1.ConditionTrue, LastTransitionTime: at(-9), LastProbeTime: at(-8)}}
	}), Report: report})
	for _, tt := range []struct {
		name              string
		status            corev1.ConditionStatus
		transition, probe metav1.Time
	}{
		{"the same status", corev1.ConditionTrue, at(-9), at(-8)},
		{"another status", corev1.ConditionFalse, at(0), metav1.Time{}},
	} {
		report.Conditions = []corev1.PodCondition{probed(tt.status, at(-1))}
		_, then := publish(t, View{API: after, Report: report})
		got := condition(then.Status.Conditions, "own")
		if !got.LastTransitionTime.Equal(&tt.transition) || !got.LastProbeTime.Equal(&tt.probe) || got.ObservedGeneration != 7 {
			t.Errorf("%s: got %+v, want the times %v and %v, of generation 7", tt.name, got, tt.transition, tt.probe)
		}
	}
}

// TestGateThatClosesReadyIsTheTransition holds that Ready gets the transition time of the readiness gate, not of the provider's condition.
func TestGateThatClosesReadyIsTheTransition(t *testing.T) {
	report := runningStatus()
	report.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: now.Add(-time.Hour)}}}
	api := pod("a", func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}} })
	_, after := publish(t, View{API: api, Report: report})
	if ready := condition(after.Status.Conditions, corev1.PodReady); ready.Status != corev1.ConditionFalse || !ready.LastTransitionTime.Equal(&metav1.Time{Time: now}) {
		t.Errorf("got %+v, want not ready since now", ready)
	}
	if w, status := Publish(View{API: after, Report: report, Now: now.Add(time.Minute)}); w != Keep {
		t.Errorf("a minute later: %s", cmp.Diff(after.Status, status))
	}
}
