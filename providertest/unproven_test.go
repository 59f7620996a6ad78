// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// TestFeaturesThatNoCheckProves: a declared feature that no check proves fails a test, because its author can
// give the reason. A user cannot change this; for a user the feature is reported as skipped.
func TestFeaturesThatNoCheckProves(t *testing.T) {
	h := inProcess(func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return p })
	h.Command = nil
	of := func(r providertest.Report) providertest.FeatureResult {
		i := slices.IndexFunc(r.Features, func(f providertest.FeatureResult) bool { return f.Feature == capability.ExecProbes })
		if i < 0 {
			t.Fatalf("nothing is said of ExecProbes: %v", r.Features)
		}
		return r.Features[i]
	}
	if f := of(verify(t, h)); f.Outcome != providertest.Failed {
		t.Errorf("a declared feature that nothing proves is %+v, want it to fail", f)
	}
	h.AllowUnproven = true
	f := of(verify(t, h))
	if f.Outcome != providertest.Skipped || !strings.HasPrefix(f.Detail, "check probes/") || !strings.HasSuffix(f.Detail, "was skipped: the harness has no commands") {
		t.Errorf("where that is allowed it is %+v, want it skipped, with the reason", f)
	}
	h.AllowUnproven, h.Only = false, regexp.MustCompile("^creation/")
	r := verify(t, h)
	if f := of(r); f.Outcome != providertest.Skipped || f.Detail != "not every check was run" {
		t.Errorf("where not every check was run it is %+v", f)
	}
	for _, k := range r.Results {
		if !strings.HasPrefix(k.Name, "creation/") {
			t.Errorf("check %s was run, which was not asked for", k.Name)
		}
	}
}
