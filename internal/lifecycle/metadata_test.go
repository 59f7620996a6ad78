// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestBackendIsToldWhatItDoesNotKnow holds that only changes are sent: neither values that the backend received, nor values that the
// provider itself wrote.
func TestBackendIsToldWhatItDoesNotKnow(t *testing.T) {
	type entries = map[string]string
	set, other := "set", "other"
	for _, tt := range []struct {
		name      string
		api, told entries
		writing   map[string]*string
		behind    bool
		want      Step
	}{
		{name: "nothing"},
		{name: "what it was given", api: entries{"k": "v"}, told: entries{"k": "v"}},
		{name: "a new entry", api: entries{"k": "v"}, want: Update},
		{name: "a new entry beside others", api: entries{"k": "v", "l": "w"}, told: entries{"k": "v"}, want: Update},
		{name: "another value", api: entries{"k": "w"}, told: entries{"k": "v"}, want: Update},
		{name: "an empty value", api: entries{"k": ""}, want: Update},
		{name: "a removal", told: entries{"k": "v"}, want: Update},
		{name: "one for the other", api: entries{"l": "v"}, told: entries{"k": "v"}, want: Update},
		{name: "the provider's entry, while it is written", api: entries{"k": "set"}, writing: map[string]*string{"k": &set}},
		{name: "the provider's entry, which is not there yet", writing: map[string]*string{"k": &set}},
		{name: "the provider's value, while it is written", api: entries{"k": "set"}, told: entries{"k": "v"}, writing: map[string]*string{"k": &set}},
		{name: "the provider's value, which is not there yet", api: entries{"k": "v"}, told: entries{"k": "v"}, writing: map[string]*string{"k": &set}},
		{name: "a user's value instead", api: entries{"k": "v"}, writing: map[string]*string{"k": &other}, want: Update},
		{name: "the provider's removal, while it is written", told: entries{"k": "v"}, writing: map[string]*string{"k": nil}},
		{name: "the provider's removal, and a user's value", api: entries{"k": "v"}, told: entries{"k": "w"}, writing: map[string]*string{"k": nil}, want: Update},
		{name: "a user's removal of what the provider writes", told: entries{"k": "v"}, writing: map[string]*string{"k": &set}, want: Update},
		{name: "the provider's entry and a user's", api: entries{"k": "set", "l": "w"}, writing: map[string]*string{"k": &set}, want: Update},
		{name: "an older pod than was written", api: entries{"k": "v"}, told: entries{"k": "set"}, behind: true},
	} {
		for kind, pods := range map[string]func(entries) (*corev1.Pod, Told){
			"label": func(m entries) (*corev1.Pod, Told) {
				return pod("a", func(p *corev1.Pod) { p.Labels = m }), Told{Labels: tt.told, WritingLabels: tt.writing, Behind: tt.behind}
			},
			"annotation": func(m entries) (*corev1.Pod, Told) {
				return pod("a", func(p *corev1.Pod) { p.Annotations = m }), Told{Annotations: tt.told, WritingAnnotations: tt.writing, Behind: tt.behind}
			},
		} {
			t.Run(tt.name+", "+kind, func(t *testing.T) {
				api, told := pods(tt.api)
				f := given{API: api, Sent: accepted(api), Told: told, Backend: pod("a")}.facts()
				if got := Next(&f).Step; got != tt.want {
					t.Errorf("got step %d, want %d", got, tt.want)
				}
				if got := f.quiet(); got != (tt.want == Rest) {
					t.Errorf("quiet is %v, want what Next says", got)
				}
			})
		}
	}
}

// TestUpdateThatFailedIsSentAgain holds this regardless of the backend's known state.
func TestUpdateThatFailedIsSentAgain(t *testing.T) {
	sent := accepted(pod("a"))
	sent.Updating = true
	f := given{API: pod("a"), Sent: sent, Backend: pod("a")}.facts()
	if got := Next(&f).Step; got != Update || f.quiet() {
		t.Errorf("got step %d, want Update", got)
	}
}

func TestSpecVersionFollowsTheSpec(t *testing.T) {
	old := pod("a", func(p *corev1.Pod) { p.Generation = 0 })
	for name, tt := range map[string]struct {
		a, b *corev1.Pod
		same bool
	}{
		"generation":                            {pod("a"), pod("a", func(p *corev1.Pod) { p.Generation = 2 }), false},
		"labels":                                {pod("a"), pod("a", withLabel("k", "v")), true},
		"spec, by an API server without":        {old, pod("a", withImage("j"), func(p *corev1.Pod) { p.Generation = 0 }), false},
		"labels, by an API server without":      {old, pod("a", withLabel("k", "v"), func(p *corev1.Pod) { p.Generation = 0 }), true},
		"status, by an API server without them": {old, pod("a", inPhase(corev1.PodRunning), func(p *corev1.Pod) { p.Generation = 0 }), true},
	} {
		if got := SpecVersion(tt.a) == SpecVersion(tt.b); got != tt.same {
			t.Errorf("%s changed: the same is %v, want %v", name, got, tt.same)
		}
	}
}

func TestMetadataDiffIsWhatTheProviderChanged(t *testing.T) {
	handed := map[string]string{"same": "1", "changed": "1", "lacking": "1", "users": "old"}
	reported := map[string]string{"same": "1", "changed": "2", "added": "1", "empty": "", "written": "1", "kept": "1", "users": "old"}
	api := map[string]string{"same": "1", "changed": "1", "lacking": "1", "users": "new", "written": "1", "kept": "1", "mine": "1", "theirs": "2"}
	own := map[string]string{"mine": "1", "kept": "1", "theirs": "1", "gone": ""}
	got := MetadataDiff(reported, api, func(k, v string) bool { was, has := handed[k]; return has && was == v }, own)
	two, one, none := "2", "1", ""
	want := map[string]*string{"changed": &two, "added": &one, "empty": &none, "mine": nil}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got): %s", d)
	}
}

// TestChangedIsACopy holds that Changed does not modify the map, which other goroutines may read.
func TestChangedIsACopy(t *testing.T) {
	before, set := map[string]string{"kept": "1", "changed": "1", "removed": "1"}, "2"
	m := maps.Clone(before)
	got := Changed(m, map[string]*string{"changed": &set, "added": &set, "removed": nil, "never": nil})
	if want := map[string]string{"kept": "1", "changed": "2", "added": "2"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !maps.Equal(m, before) {
		t.Errorf("what was given has become %v", m)
	}
	same := Changed(m, nil)
	if same["new"] = "1"; m["new"] != "1" {
		t.Error("without a change it is a copy")
	}
}
