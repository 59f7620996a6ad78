// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// leaving makes a file for each pod, and removes the file with the pod unless spare returns true.
type leaving struct {
	*inprocess.Provider
	files map[string]bool
	spare func(*corev1.Pod) bool // a pod whose file stays
}

func (l leaving) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	l.files[pod.Name] = true
	return l.Provider.CreatePod(ctx, pod)
}

func (l leaving) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if !l.spare(pod) {
		delete(l.files, pod.Name)
	}
	return l.Provider.DeletePod(ctx, pod)
}

// TestLeftoversAreCounted: things that pods leave behind fail the check. They are allowed only by a rule with a
// bound.
func TestLeftoversAreCounted(t *testing.T) {
	one := func(pod *corev1.Pod) bool { return pod.Name == "second-0" }
	for name, of := range map[string]struct {
		spare func(*corev1.Pod) bool
		kept  map[string]providertest.Kept
		want  string // in the detail; "" passes
	}{
		"nothing":                 {spare: func(*corev1.Pod) bool { return false }},
		"one file":                {spare: one, want: "after 20 lives of pods 1 files are left, want at most 0: second-0"},
		"all files":               {spare: func(*corev1.Pod) bool { return true }, want: "20 files are left"},
		"one file by a rule":      {spare: one, kept: map[string]providertest.Kept{"files": {Most: 1, Rule: "the newest one"}}},
		"all files by a rule":     {spare: func(*corev1.Pod) bool { return true }, kept: map[string]providertest.Kept{"files": {Most: 1, Rule: "the newest one"}}, want: "want at most 1"},
		"a rule without a bound":  {spare: one, kept: map[string]providertest.Kept{"files": {Rule: "for ever"}}, want: "Backend.Kept of files"},
		"a bound without a rule":  {spare: one, kept: map[string]providertest.Kept{"files": {Most: 20}}, want: "Backend.Kept of files"},
		"a rule for another kind": {spare: one, kept: map[string]providertest.Kept{"pods": {Most: 1, Rule: "the newest one"}}, want: "1 files are left"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			files := map[string]bool{"of somebody else": true}
			h := inProcess(func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
				return leaving{p, files, of.spare}
			})
			h.Only = regexp.MustCompile("^leftovers/")
			backend := h.Backend
			h.Backend = func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
				b, err := backend(ctx, env)
				if err != nil {
					return nil, err
				}
				b.Kept, b.Left = of.kept, func() (map[string][]string, error) {
					left := map[string][]string{"pods": nil}
					for file := range files {
						left["files"] = append(left["files"], file)
					}
					return left, nil
				}
				return b, nil
			}
			r := verify(t, h)
			if len(r.Results) != 1 {
				t.Fatal(fmt.Sprint(r.Results))
			}
			k := r.Results[0]
			if (k.Outcome == providertest.Failed) != (of.want != "") || !strings.Contains(k.Detail, of.want) {
				t.Errorf("got %s: %q, want %q", k.Outcome, k.Detail, of.want)
			}
		})
	}
}
