// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPatchNamesTheUIDAndOnlyWhatDiffers(t *testing.T) {
	api := pod("a")
	api.Status = *runningStatus()
	api.Status.QOSClass = corev1.PodQOSBurstable
	want := *api.Status.DeepCopy()
	want.Message = "hello"
	body, _ := PatchBody(api, Change{Status: want})
	if got, want := string(body), `{"metadata":{"uid":"a"},"status":{"message":"hello"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if body, any := PatchBody(api, Change{Status: api.Status}); any {
		t.Errorf("got %s, want nothing", body)
	}
}

// TestConditionsLoseWhatTheyNoLongerSay holds that a patch removes the reason and message of a condition that no longer has them.
func TestConditionsLoseWhatTheyNoLongerSay(t *testing.T) {
	said := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "wait", ObservedGeneration: 3}
	for _, want := range []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, ObservedGeneration: 4},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "Why", ObservedGeneration: 4},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: "why", ObservedGeneration: 4},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "Why", Message: "why"},
	} {
		api := pod("a")
		api.Status.Conditions = []corev1.PodCondition{said, {Type: "example.com/Foreign", Status: corev1.ConditionTrue, Reason: "Kept"}}
		status := *api.Status.DeepCopy()
		status.Conditions[0] = want
		after := applied(t, api, Change{Status: status}).Status
		if d := cmp.Diff(status.Conditions, after.Conditions); d != "" {
			t.Errorf("(-want +got): %s", d)
		}
	}
}

// TestPatchNamesWhatAConditionLoses holds that the patch sets exactly the removed fields to null, because a merge keeps omitted fields.
func TestPatchNamesWhatAConditionLoses(t *testing.T) {
	cond := func(reason, message string, generation int64) corev1.PodCondition {
		return corev1.PodCondition{Type: "c", Status: corev1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation}
	}
	for _, tt := range []struct {
		name         string
		before, want corev1.PodCondition
		lost         []string
	}{
		{"nothing", cond("R", "m", 1), cond("S", "n", 2), nil},
		{"nothing, as there was none", cond("", "", 0), cond("R", "m", 1), nil},
		{"the reason", cond("R", "m", 1), cond("", "m", 1), []string{"reason"}},
		{"the message", cond("R", "m", 1), cond("R", "", 1), []string{"message"}},
		{"the generation", cond("R", "m", 1), cond("R", "m", 0), []string{"observedGeneration"}},
		{"nothing of a reason", cond("R", "", 0), cond("S", "", 0), nil},
		{"nothing of a message", cond("", "m", 0), cond("", "n", 0), nil},
		{"nothing of a generation", cond("", "", 1), cond("", "", 2), nil},
	} {
		before, after := &corev1.Pod{}, corev1.PodStatus{Conditions: []corev1.PodCondition{tt.want}}
		before.Status.Conditions = []corev1.PodCondition{tt.before}
		body, _ := PatchBody(before, Change{Status: after})
		var patch struct {
			Status struct{ Conditions []map[string]any }
		}
		if err := json.Unmarshal(body, &patch); err != nil {
			t.Fatal(err)
		}
		var lost []string
		for _, field := range []string{"reason", "message", "observedGeneration"} {
			if value, has := patch.Status.Conditions[0][field]; has && value == nil {
				lost = append(lost, field)
			}
		}
		if d := cmp.Diff(tt.lost, lost); d != "" {
			t.Errorf("%s: %s (-want +got): %s", tt.name, body, d)
		}
	}
}

// TestPatchOfWhatTheProviderChanged checks patches with the provider's changes of labels and annotations, with and without a status.
func TestPatchOfWhatTheProviderChanged(t *testing.T) {
	api, set := pod("a", inPhase(corev1.PodRunning)), "v"
	entries := map[string]*string{"k": &set, "gone": nil}
	message := corev1.PodStatus{Phase: corev1.PodRunning, Message: "m"}
	for want, change := range map[string]Change{
		`{"metadata":{"labels":{"gone":null,"k":"v"},"uid":"a"}}`:                                {Status: api.Status, Labels: entries},
		`{"metadata":{"annotations":{"gone":null,"k":"v"},"uid":"a"}}`:                           {Status: api.Status, Annotations: entries},
		`{"metadata":{"labels":{"gone":null,"k":"v"},"uid":"a"},"status":{"message":"m"}}`:       {Status: message, Labels: entries},
		`{"metadata":{"uid":"a"},"status":{"conditions":[{"$patch":"delete","type":"theirs"}]}}`: {Status: api.Status, DropConditions: []corev1.PodConditionType{"never", "theirs"}},
		"": {Status: api.Status, DropConditions: []corev1.PodConditionType{"never"}},
	} {
		before := api.DeepCopy()
		before.Status.Conditions = []corev1.PodCondition{{Type: "theirs"}}
		if got, any := PatchBody(before, change); string(got) != want || any != (want != "") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func BenchmarkPatchBody(b *testing.B) {
	api := pod("a")
	_, status := Publish(View{API: api, Report: runningStatus(), Generation: 1, Reflected: 1, Now: now})
	b.ReportAllocs()
	for b.Loop() {
		if _, any := PatchBody(api, Change{Status: status}); !any {
			b.Fatal("no change")
		}
	}
}
