// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func runningStatus() *corev1.PodStatus {
	return &corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1", HostIP: "192.0.2.1",
		StartTime: &metav1.Time{Time: now.Add(123456789)},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "c", Ready: true, ContainerID: "x://1",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: now.Add(5)}}},
		}},
	}
}

func endedStatus(exitCode int32) *corev1.PodStatus {
	s := runningStatus()
	s.Phase = corev1.PodSucceeded
	if exitCode != 0 {
		s.Phase = corev1.PodFailed
	}
	s.ContainerStatuses[0].Ready = false
	s.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}}
	return s
}

// applied returns the API server's pod after the patch.
func applied(t *testing.T, pod *corev1.Pod, change Change) *corev1.Pod {
	t.Helper()
	body, any := PatchBody(pod, change)
	if !any {
		return pod
	}
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, body, corev1.Pod{})
	if err != nil {
		t.Fatalf("patch %s: %v", body, err)
	}
	var out corev1.Pod
	if err := json.Unmarshal(after, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func publish(t *testing.T, v View) (Write, *corev1.Pod) {
	t.Helper()
	v.Now = now
	w, status := Publish(v)
	if w != Patch {
		return w, v.API
	}
	return w, applied(t, v.API, Change{Status: status})
}

// TestPublishSettles: after the patch there is nothing left to write.
func TestPublishSettles(t *testing.T) {
	for name, v := range map[string]View{
		"running":   {API: pod("a"), Report: runningStatus(), Generation: 1, Reflected: 1},
		"succeeded": {API: pod("a"), Report: endedStatus(0), Generation: 1, Reflected: 1},
		"syncErr":   {API: pod("a"), SyncError: &SyncError{Reason: ReasonProviderFailed, Message: "no"}},
		"waiting":   {API: pod("a"), SyncError: &SyncError{Reason: ReasonProviderFailed, Message: "no", Container: "c", WaitingReason: "CreateContainerConfigError"}},
		"failure":   {API: pod("a"), Report: runningStatus(), Stopped: true, Failure: &PodFailure{Reason: "DeadlineExceeded", Message: "late"}},
		"bare":      {API: pod("a"), Report: &corev1.PodStatus{Phase: corev1.PodRunning}},
	} {
		t.Run(name, func(t *testing.T) {
			w, after := publish(t, v)
			if w != Patch {
				t.Fatalf("got %d, want a patch", w)
			}
			v.API, v.Now = after, now.Add(time.Minute)
			if w, status := Publish(v); w != Keep {
				t.Errorf("a second time: %s", cmp.Diff(after.Status, status))
			}
		})
	}
}

func TestTerminalPhaseIsAbsorbingButExitCodesArrive(t *testing.T) {
	api := pod("a")
	api.Status = *endedStatus(1)
	api.Status.ContainerStatuses[0].RestartCount = 3
	late := endedStatus(0)
	late.ContainerStatuses[0].State.Terminated.ExitCode = 42
	_, after := publish(t, View{API: api, Report: late})
	if after.Status.Phase != corev1.PodFailed {
		t.Errorf("phase %s, want Failed", after.Status.Phase)
	}
	got := after.Status.ContainerStatuses[0]
	if got.State.Terminated == nil || got.State.Terminated.ExitCode != 42 || got.RestartCount != 3 {
		t.Errorf("got %+v, want exit code 42 and 3 restarts", got)
	}
	_, after = publish(t, View{API: after, Report: runningStatus()})
	if after.Status.ContainerStatuses[0].State.Terminated == nil || after.Status.Phase != corev1.PodFailed {
		t.Errorf("a container starts again after the end: %+v", after.Status)
	}
}

func TestConditionsOfOthersSurvive(t *testing.T) {
	api := pod("a")
	api.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
	api.Status.Conditions = []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionTrue}, {Type: "theirs", Status: corev1.ConditionFalse}}
	report := runningStatus()
	report.Conditions = []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionFalse}, {Type: "mine", Status: corev1.ConditionTrue}}
	_, after := publish(t, View{API: api, Report: report})
	for cond, want := range map[corev1.PodConditionType]corev1.ConditionStatus{
		"gate": corev1.ConditionTrue, "theirs": corev1.ConditionFalse, "mine": corev1.ConditionTrue,
		corev1.PodReady: corev1.ConditionTrue, corev1.ContainersReady: corev1.ConditionTrue,
		corev1.PodInitialized: corev1.ConditionTrue, corev1.PodScheduled: corev1.ConditionTrue,
	} {
		if c := condition(after.Status.Conditions, cond); c == nil || c.Status != want {
			t.Errorf("condition %s is %+v, want %s", cond, c, want)
		}
	}
	dropped := applied(t, after, Change{Status: after.Status, DropConditions: []corev1.PodConditionType{"mine"}})
	if condition(dropped.Status.Conditions, "mine") != nil || condition(dropped.Status.Conditions, "theirs") == nil {
		t.Errorf("after the drop of mine: %+v", dropped.Status.Conditions)
	}
}

// TestGateThatIsTheProviders holds that a newer readiness gate in a report counts: a copy would never be newer than the condition itself.
func TestGateThatIsTheProviders(t *testing.T) {
	api := pod("a")
	api.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
	report := runningStatus()
	report.Conditions = []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionFalse, LastTransitionTime: metav1.Time{Time: now}}}
	_, after := publish(t, View{API: api, Report: report})
	report.Conditions = []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: now.Add(time.Minute)}}}
	_, after = publish(t, View{API: after, Report: report})
	if ready := condition(after.Status.Conditions, corev1.PodReady); ready.Status != corev1.ConditionTrue {
		t.Errorf("Ready is %+v although its gate is open: %+v", ready, after.Status.Conditions)
	}
}

func TestReadyWaitsForReadinessGates(t *testing.T) {
	api := pod("a")
	api.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
	_, after := publish(t, View{API: api, Report: runningStatus()})
	ready := condition(after.Status.Conditions, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionFalse || ready.Reason != "ReadinessGatesNotReady" || !strings.Contains(ready.Message, "gate") {
		t.Errorf("Ready without its gate: %+v", ready)
	}
	after.Status.Conditions = append(after.Status.Conditions, corev1.PodCondition{Type: "gate", Status: corev1.ConditionTrue})
	_, after = publish(t, View{API: after, Report: runningStatus()})
	if ready := condition(after.Status.Conditions, corev1.PodReady); ready.Status != corev1.ConditionTrue {
		t.Errorf("Ready with its gate: %+v", ready)
	}
}

func TestChangedAddressReplacesTheOldOne(t *testing.T) {
	_, after := publish(t, View{API: pod("a"), Report: runningStatus()})
	moved := runningStatus()
	moved.PodIP = "10.0.0.2"
	_, after = publish(t, View{API: after, Report: moved})
	want := []corev1.PodIP{{IP: "10.0.0.2"}}
	if d := cmp.Diff(want, after.Status.PodIPs); d != "" || after.Status.PodIP != "10.0.0.2" {
		t.Errorf("podIP %s, podIPs (-want +got): %s", after.Status.PodIP, d)
	}
}

func TestObservedGenerationFollowsTheBackend(t *testing.T) {
	api := pod("a")
	api.Generation = 3
	_, after := publish(t, View{API: api, Report: runningStatus(), Generation: 2, Reflected: 2})
	if after.Status.ObservedGeneration != 2 || condition(after.Status.Conditions, corev1.PodReady).ObservedGeneration != 2 {
		t.Errorf("got %+v, want generation 2 observed", after.Status)
	}
}

// TestGenerationIsNotAheadOfTheStatus holds that a report from before the backend accepted a change does not confirm its generation.
func TestGenerationIsNotAheadOfTheStatus(t *testing.T) {
	for _, tc := range []struct{ accepted, told, want int64 }{{3, 2, 2}, {2, 3, 2}, {3, 0, 1}, {3, 3, 3}} {
		api := pod("a")
		api.Generation, api.Status.ObservedGeneration = 3, 1
		_, after := publish(t, View{API: api, Report: runningStatus(), Generation: tc.accepted, Reflected: tc.told})
		ready := condition(after.Status.Conditions, corev1.PodReady)
		if after.Status.ObservedGeneration != tc.want || ready.ObservedGeneration != tc.want {
			t.Errorf("accepted %d, told of %d: generation %d is observed, by Ready %d, want %d", tc.accepted, tc.told,
				after.Status.ObservedGeneration, ready.ObservedGeneration, tc.want)
		}
	}
}

func TestGenerationWaitsForAReport(t *testing.T) {
	api := pod("a")
	if w, after := publish(t, View{API: api, Attempted: true, Generation: 1, Reflected: 1}); w != Keep {
		t.Errorf("got write %d of %+v, want none: the first report carries it", w, after.Status)
	}
}

func TestStopWithoutAWordInventsNoSuccess(t *testing.T) {
	api := pod("a", deleting(1))
	w, after := publish(t, View{API: api, Report: runningStatus(), Stopped: true, StopAsked: true, Attempted: true})
	end := after.Status.ContainerStatuses[0].State.Terminated
	if w != Patch || after.Status.Phase != corev1.PodFailed || end == nil || end.ExitCode == 0 || end.Reason != "ContainerStatusUnknown" {
		t.Errorf("got write %d, phase %s, end %+v", w, after.Status.Phase, end)
	}
	if w, _ := publish(t, View{API: after, Report: runningStatus(), Stopped: true, StopAsked: true, Attempted: true}); w != Remove {
		t.Errorf("then: got write %d, want Remove", w)
	}
}

// TestContainerThatNeverRanWaits holds that containers after a failed init container are not shown as ended.
func TestContainerThatNeverRanWaits(t *testing.T) {
	report := endedStatus(1)
	report.Phase = corev1.PodFailed
	report.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
	_, after := publish(t, View{API: pod("a"), Report: report, Attempted: true})
	if w, again := publish(t, View{API: after, Report: report, Attempted: true}); w != Keep || again.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("got write %d, %+v, want no write and a container that waits", w, again.Status.ContainerStatuses)
	}
	ran := pod("a")
	ran.Status = *runningStatus()
	ran.Status.Phase = corev1.PodFailed
	report.ContainerStatuses[0].Name = ran.Status.ContainerStatuses[0].Name
	if _, after := publish(t, View{API: ran, Report: report, Attempted: true}); !endUnknown(&after.Status.ContainerStatuses[0]) {
		t.Errorf("got %+v for a container that ran, want ContainerStatusUnknown", after.Status.ContainerStatuses)
	}
}

// TestKeepKeeps holds that a held pod is not written forever if the API server stores its status differently, such as an old status without
// a field.
func TestKeepKeeps(t *testing.T) {
	held := pod("a", deleting(0))
	held.Finalizers = []string{"somebody/else"}
	v := View{API: held, Report: endedStatus(0), Stopped: true, StopAsked: true, Generation: 1, Reflected: 1}
	_, v.API = publish(t, v)
	v.API.Status.ObservedGeneration, v.FinalStatus = 0, true
	w, status := Publish(v)
	if _, any := PatchBody(v.API, Change{Status: status}); w != Keep || any {
		t.Errorf("got write %d, patch %v, want nothing to write", w, any)
	}
}

// TestRemovalWithoutAGracePeriod holds that a deleted pod without a deletion grace period is removed too, unless it has a finalizer.
func TestRemovalWithoutAGracePeriod(t *testing.T) {
	for name, tt := range map[string]struct {
		finalizers []string
		want       Write
	}{"free": {nil, Remove}, "held": {[]string{"somebody/else"}, Keep}} {
		api := pod("a", deleting(0))
		api.DeletionGracePeriodSeconds, api.Spec.TerminationGracePeriodSeconds, api.Finalizers = nil, new(int64), tt.finalizers
		v := View{API: api, Report: endedStatus(0), Stopped: true, StopAsked: true, Generation: 1, Reflected: 1}
		_, v.API = publish(t, v)
		v.FinalStatus = true
		if w, _ := Publish(v); w != tt.want {
			t.Errorf("%s: got write %d, want %d", name, w, tt.want)
		}
	}
}

// TestEndedPodsAreNotWrittenForAHostIP holds that ended pods are not written when the node learns its address.
func TestEndedPodsAreNotWrittenForAHostIP(t *testing.T) {
	report := endedStatus(0)
	report.HostIP = ""
	v := View{API: pod("a"), Report: report, Generation: 1, Reflected: 1}
	_, v.API = publish(t, v)
	v.Now, v.HostIPs = now, []corev1.HostIP{{IP: "192.0.2.7"}}
	if w, status := Publish(v); w != Keep || v.API.Status.HostIP != "" {
		t.Errorf("got write %d: %s", w, cmp.Diff(v.API.Status, status))
	}
}

func TestContradictoryReportSettles(t *testing.T) {
	report := runningStatus()
	report.HostIPs = []corev1.HostIP{{IP: "192.0.2.9"}, {IP: "192.0.2.1"}}
	report.Conditions = []corev1.PodCondition{{Type: "twice", Status: corev1.ConditionTrue}, {Type: "twice", Status: corev1.ConditionFalse}}
	v := View{API: pod("a"), Report: report, Now: now}
	_, v.API = publish(t, v)
	if s := v.API.Status; s.HostIP != s.HostIPs[0].IP {
		t.Errorf("hostIP %s, hostIPs %v: the API server refuses that", s.HostIP, s.HostIPs)
	}
	v.Now = now.Add(time.Minute)
	if w, status := Publish(v); w != Keep {
		t.Errorf("a second time: %s", cmp.Diff(v.API.Status, status))
	}
}

func TestContainerThatMustNotRestartStaysTerminated(t *testing.T) {
	for _, tt := range []struct {
		policy   corev1.RestartPolicy
		exitCode int32
		restarts bool
	}{
		{corev1.RestartPolicyNever, 1, false},
		{corev1.RestartPolicyOnFailure, 0, false},
		{corev1.RestartPolicyOnFailure, 1, true},
		{corev1.RestartPolicyAlways, 0, true},
	} {
		api := pod("a", inPhase(corev1.PodRunning))
		api.Spec.RestartPolicy = tt.policy
		api.Status.ContainerStatuses = endedStatus(tt.exitCode).ContainerStatuses
		_, after := publish(t, View{API: api, Report: runningStatus()})
		if got := after.Status.ContainerStatuses[0].State.Running != nil; got != tt.restarts {
			t.Errorf("policy %s, exit code %d: running again is %v, want %v", tt.policy, tt.exitCode, got, tt.restarts)
		}
	}
}

func BenchmarkPublishNoChange(b *testing.B) {
	api := pod("a")
	v := View{API: api, Report: runningStatus(), Generation: 1, Reflected: 1, Now: now}
	_, api.Status = Publish(v)
	b.ReportAllocs()
	for b.Loop() {
		if w, _ := Publish(v); w != Keep {
			b.Fatal("changed")
		}
	}
}
