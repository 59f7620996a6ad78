// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// TestEveryFeatureCanBeAskedFor: every feature has a pod that needs it, or a reason why no pod can. Without this
// test, a feature of a later version would never be refused in a test.
func TestEveryFeatureCanBeAskedFor(t *testing.T) {
	for _, f := range capability.Features() {
		ask, why := asks[f], unaskable[f]
		if (ask == nil) == (why == "") {
			t.Errorf("%s: a pod asks for it: %t, and why none can: %q; want exactly one", f, ask != nil, why)
			continue
		}
		if ask == nil {
			continue
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}, SecurityContext: &corev1.PodSecurityContext{}}}
		ask(&pod.Spec)
		if needs := capability.Needs(pod); !slices.ContainsFunc(needs, func(n capability.Need) bool { return n.Feature == f }) {
			t.Errorf("the pod that is to ask for %s needs %v", f, needs)
		}
	}
}

// TestNamesOfChecks: the names of checks are unique, because they identify results.
func TestNamesOfChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Checks() {
		if seen[k.Name] || k.Why == "" || k.Run == nil {
			t.Errorf("check %q: the name is there twice, or it has no Why or Run", k.Name)
		}
		seen[k.Name] = true
	}
}
