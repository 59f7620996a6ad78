// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMethodsHaveOneFile(t *testing.T) {
	tree := loadArchive(t, filepath.Join("testdata", "methodfiles.txtar"))
	got := tree.MethodFiles(MethodFiles{
		Dir: "plugs", Emulators: "servers", Shared: []string{"internal/shared"},
		Methods: []MethodFile{{"Logs", "Opts", "logs.go"}, {"Exec", "IO", "exec.go"}}, Together: "driver.go",
	})
	want := []string{
		"plugs/mixed/driver.go: has Exec: move it to exec.go, where every provider has it",
		"plugs/odd/more.go: has Exec: move it to exec.go, where every provider has it",
		"plugs/internal/shared/more.go: has Logs: move it to logs.go, where every provider has it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
}
