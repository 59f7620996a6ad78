// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSectionsHaveOneOrder(t *testing.T) {
	tree := loadArchive(t, filepath.Join("testdata", "sections.txtar"))
	got := tree.Sections(Shape{Dir: "plugs", Emulators: "servers"}, []string{"further"}, []string{"Try", "Settings", OtherSections, "Limits"}, "Settings")
	want := []string{
		`plugs/late/README.md: section "Volumes" stands after "Limits": the order is Try, Settings, …, Limits, and sections of other names stand at …`,
		`plugs/odd/README.md: section "Try" stands after "Volumes": the order is Try, Settings, …, Limits, and sections of other names stand at …`,
		`plugs/odd/README.md: has the section "Limits" twice`,
		`plugs/odd/README.md: lacks the section "Settings"`,
		`further/README.md: section "Settings" stands after "Limits": the order is Try, Settings, …, Limits, and sections of other names stand at …`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
}
