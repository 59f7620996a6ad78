// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the tests would compare with")

// TestReference keeps docs/configuration.md equal to the table.
func TestReference(t *testing.T) {
	const file = "../docs/configuration.md"
	if *update {
		if err := os.WriteFile(file, []byte(reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), reference()); diff != "" {
		t.Errorf("%s is not current; run: go test ./cli -run TestReference -update\n%s", file, diff)
	}
}

// TestEverySettingIsDescribed finds incomplete rows of the table.
func TestEverySettingIsDescribed(t *testing.T) {
	fields := map[string]string{}
	for _, s := range settings() {
		if s.usage == "" {
			t.Errorf("--%s has no usage", s.flag)
		}
		if s.field == "" {
			continue
		}
		if s.group == "" {
			t.Errorf("--%s has no group, so the reference leaves it out", s.flag)
		}
		if other, taken := fields[s.field]; taken {
			t.Errorf("--%s and --%s have the field %s", s.flag, other, s.field)
		}
		fields[s.field] = s.flag
	}
}
