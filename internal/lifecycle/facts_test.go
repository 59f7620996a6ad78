// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestStepsThatAsk holds that these steps only complete the facts: another decision follows in the same pass.
func TestStepsThatAsk(t *testing.T) {
	asking := []Step{Look, ReadLive, Fail, Recreate}
	for s := Rest; s <= DeleteOrphan; s++ {
		if got, want := s.Asks(), slices.Contains(asking, s); got != want {
			t.Errorf("step %d asks is %v, want %v", s, got, want)
		}
	}
}

// TestPackageDocNamesEveryStep holds that the table of pod states in the package documentation names every step.
func TestPackageDocNamesEveryStep(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	doc, _, _ := strings.Cut(read("next.go"), "\npackage lifecycle")
	_, doc, _ = strings.Cut(doc, "# The states of a pod")
	_, steps, _ := strings.Cut(read("facts.go"), "type Step int")
	steps, _, _ = strings.Cut(steps, "\n)")
	names := regexp.MustCompile(`(?m)^\t([A-Z]\w*)( Step = iota)?$`).FindAllStringSubmatch(steps, -1)
	if len(names) != int(DeleteOrphan)+1 {
		t.Fatalf("%d steps were found, want %d", len(names), int(DeleteOrphan)+1)
	}
	for _, name := range names {
		if !regexp.MustCompile(`\b` + name[1] + `\b`).MatchString(doc) {
			t.Errorf("the table in the package documentation does not name the step %s", name[1])
		}
	}
}
