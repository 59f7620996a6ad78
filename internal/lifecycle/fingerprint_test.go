// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAdoptable(t *testing.T) {
	observed := func(generation int64) podOpt {
		return func(p *corev1.Pod) { p.Status.ObservedGeneration = generation }
	}
	image := func(name string) podOpt { return func(p *corev1.Pod) { p.Spec.Containers[0].Image = name } }
	labels := func(pairs ...string) podOpt {
		return func(p *corev1.Pod) {
			p.Labels = map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				p.Labels[pairs[i]] = pairs[i+1]
			}
		}
	}
	annotation := func(v string) podOpt { return func(p *corev1.Pod) { p.Annotations = map[string]string{"k": v} } }
	var many []string
	for k := range 32 {
		many = append(many, strconv.Itoa(k), "v")
	}
	for _, tt := range []struct {
		name         string
		api, backend *corev1.Pod
		want         bool
	}{
		{"the same", pod("a"), pod("a"), true},
		{"a generation was missed", pod("a", withImage("j"), observed(1)), pod("a", image("j")), false},
		{"the backend names images in its own way", pod("a", observed(1)), pod("a", image("mirror.local/x/i@sha256:1")), true},
		{"the same image in full, and nobody knows the generation", pod("a", image("i")), pod("a", image("docker.io/library/i:latest")), true},
		{"the same image of a user in full", pod("a", image("u/i:1")), pod("a", image("docker.io/u/i:1")), true},
		{"another image, and nobody knows the generation", pod("a", image("i")), pod("a", image("j")), false},
		{"the same image with a tag, in full", pod("a", image("i:1")), pod("a", image("docker.io/library/i:1")), true},
		{"another registry, and nobody knows the generation", pod("a", image("localhost/i")), pod("a", image("docker.io/library/i")), false},
		{"another registry than a user's of that name", pod("a", image("localhost/i")), pod("a", image("docker.io/localhost/i")), false},
		{"another image of a registry", pod("a", image("r.io/i")), pod("a", image("r.io/library/i")), false},
		{"another registry, whose name is part of the other", pod("a", image("r:5/0i")), pod("a", image("r:50/i")), false},
		{"the backend keeps labels", pod("a", labels("k", "v")), pod("a", labels("k", "v", "own", "1")), true},
		{"the backend has one label of many", pod("a", labels(many...)), pod("a", labels(many[0], many[1])), false},
		{"a label of many was added meanwhile", pod("a", labels(append(slices.Clone(many), "l", "w")...)), pod("a", labels(many...)), false},
		{"an annotation was changed meanwhile", pod("a", annotation("w")), pod("a", annotation("v")), false},
		{"the backend keeps no labels", pod("a", labels("k", "v")), pod("a"), true},
		{"the backend keeps labels of its own only", pod("a", labels("k", "v")), pod("a", labels("own", "1")), true},
		{"a label was added meanwhile", pod("a", labels("k", "v", "l", "w")), pod("a", labels("k", "v")), false},
		{"a label was changed meanwhile", pod("a", labels("k", "w")), pod("a", labels("k", "v")), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := adoptable(tt.api, tt.backend, &Sent{}); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	changed, before := pod("a", withImage("j"), observed(2)), pod("a", image("i"))
	for attempted, want := range map[bool]bool{false: true, true: false} {
		if got := adoptable(changed, before, &Sent{Attempted: attempted}); got != want {
			t.Errorf("another image, where a create before may have made the pod (%t): got %v, want %v", attempted, got, want)
		}
	}
}
