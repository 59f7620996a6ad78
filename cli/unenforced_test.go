// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// TestAcceptUnenforcedTakesNamesOfFeatures holds that a wrong name is an error, because it would otherwise have an unexpected effect or
// none.
func TestAcceptUnenforcedTakesNamesOfFeatures(t *testing.T) {
	const off = "--disable-kubelet-api"
	for _, tt := range []struct {
		args  []string
		file  string
		want  []capability.Feature
		fails string
	}{
		{args: []string{off}},
		{args: []string{off, "--accept-unenforced=FSGroup,ReadOnlyRoot"}, want: []capability.Feature{"FSGroup", "ReadOnlyRoot"}},
		{args: []string{off}, file: fileHead + "acceptUnenforced: [FSGroup]\n", want: []capability.Feature{"FSGroup"}},
		{args: []string{off, "--accept-unenforced=none"}, want: []capability.Feature{}},
		{args: []string{off, "--accept-unenforced=none,FSGroup"}, fails: "--accept-unenforced none: contradicts the features beside it"},
		{args: []string{off, "--accept-unenforced=secomp"}, fails: `--accept-unenforced "secomp": there is no such feature; did you mean Seccomp?`},
		{args: []string{off, "--accept-unenforced=Privileged"}, fails: "--accept-unenforced Privileged: a pod that asks for it cannot run without it: want some of "},
	} {
		r, err := resolveWith(t, tt.args, nil, tt.file)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%q: got %v, want %q", tt.args, err, tt.fails)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := r.acceptedFeatures(); !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("%q: accepted are %#v, want %#v", tt.args, got, tt.want)
		}
	}
}

// TestNodeSaysWhatIsUnenforced holds that an annotation of the node lists the accepted features that the backend lacks.
func TestNodeSaysWhatIsUnenforced(t *testing.T) {
	for arg, want := range map[string]string{
		"--log-level=info":                          "NoNewPrivileges,Seccomp", // the provider's default, in the order of the features
		"--accept-unenforced=none":                  "",
		"--accept-unenforced=FSGroup,RunAsUser":     "FSGroup",
		"--accept-unenforced=Seccomp,FSGroup":       "FSGroup,Seccomp",
		"--accept-unenforced=StopSignal,ExecProbes": "StopSignal,ExecProbes",
	} {
		r, err := resolveWith(t, []string{"--disable-kubelet-api", arg}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
		if _, _, err := r.newProvider(t.Context(), Provider{Name: "some", New: newDeclaring})(nodeutil.ProviderConfig{Node: n}); err != nil {
			t.Fatal(err)
		}
		if got := n.Annotations[capability.UnenforcedAnnotation]; got != want {
			t.Errorf("%s: the annotation is %q, want %q", arg, got, want)
		}
	}
}

// declaring is a provider that supports only RunAsUser, and accepts two features.
type declaring struct{ empty }

func newDeclaring(context.Context, ProviderInput) (nodeutil.Provider, error) { return declaring{}, nil }

// Capabilities implements capability.Declarer.
func (declaring) Capabilities() capability.Declaration {
	return capability.Only(capability.RunAsUser).Accept(capability.Seccomp, capability.NoNewPrivileges)
}
