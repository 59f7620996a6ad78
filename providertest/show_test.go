// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// recorder is a test that keeps its errors instead of failing.
type recorder struct {
	*testing.T
	errors *[]string
}

// Run implements providertest.Testing. It calls test without a subtest.
func (r recorder) Run(_ string, test func(recorder)) bool {
	test(r)
	return true
}

// Errorf implements providertest.Testing.
func (r recorder) Errorf(format string, args ...any) {
	*r.errors = append(*r.errors, fmt.Sprintf(format, args...))
}

func TestFailureBeginsWithTheNameOfItsCheck(t *testing.T) {
	h := inProcess(func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return p })
	h.Extra = []providertest.Check{{Name: "extra/fails", Why: "this test needs a failure", Run: func(c *providertest.C) { c.Errorf("it fails") }}}
	h.Only = regexp.MustCompile("^extra/")
	var errors []string
	synctest.Test(t, func(t *testing.T) { providertest.Run(recorder{T: t, errors: &errors}, h) })
	if len(errors) != 1 || !strings.HasPrefix(errors[0], "extra/fails: it fails\n") {
		t.Errorf("the errors are %q, want one that begins with the name of the check", errors)
	}
}
