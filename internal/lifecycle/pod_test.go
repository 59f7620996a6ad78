// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestForeignOS(t *testing.T) {
	for _, tt := range []struct {
		name     string
		asks, os string
		opts     []podOpt
		want     bool
	}{
		{name: "it asks for none", os: "linux"},
		{name: "it asks for that of the node", asks: "linux", os: "linux"},
		{name: "it asks for another one", asks: "windows", os: "linux", want: true},
		{name: "it asks for another one, and runs", asks: "windows", os: "linux", opts: []podOpt{inPhase(corev1.PodRunning)}},
		{name: "the node does not tell", asks: "windows"},
	} {
		p := pod("a", tt.opts...)
		if tt.asks != "" {
			p.Spec.OS = &corev1.PodOS{Name: corev1.OSName(tt.asks)}
		}
		if got := ForeignOS(p, tt.os); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
