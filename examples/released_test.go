// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestProgramsOfARelease: make up takes the files of a release when they are there and whole, and builds else.
func TestProgramsOfARelease(t *testing.T) {
	platform := runtime.GOOS + "_" + runtime.GOARCH
	const program = "#!/bin/sh\necho released\n"
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
	for name, tc := range map[string]struct {
		files map[string]string
		made  string // what the program is, "" for none
		said  string
	}{
		"no release": {nil, "built\n", ""},
		"whole": {map[string]string{
			"foo_v1.2.3_" + platform: program,
			"SHA256SUMS":             sum("other") + "  foo_v1.2.3_plan9_386\n" + sum("other") + "  foo-bar_v1.2.3_" + platform + "\n" + sum(program) + "  foo_v1.2.3_" + platform + "\n",
		}, program, "foo_v1.2.3_" + platform + " of the release"},
		"another platform": {map[string]string{"foo_v1.2.3_plan9_386": program, "SHA256SUMS": sum(program) + "  foo_v1.2.3_plan9_386\n"}, "built\n", "has none for " + platform},
		"not downloaded":   {map[string]string{"SHA256SUMS": sum(program) + "  foo_v1.2.3_" + platform + "\n"}, "built\n", "has none for"},
		"cut short": {map[string]string{"foo_v1.2.3_" + platform: program[:20], "SHA256SUMS": sum(program) + "  foo_v1.2.3_" + platform + "\n"},
			"", "is not what its SHA256SUMS says: download it again"},
	} {
		t.Run(name, func(t *testing.T) {
			release, output := t.TempDir(), filepath.Join(t.TempDir(), "bin", "foo")
			for file, content := range tc.files {
				if err := os.WriteFile(filepath.Join(release, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "../hack/released.sh", output, "sh", "-c", `mkdir -p "$(dirname "$0")" && echo built >"$0"`, output)
			cmd.Env = append(os.Environ(), "RELEASE="+release)
			said, err := cmd.CombinedOutput()
			made, _ := os.ReadFile(output)
			if (err == nil) != (tc.made != "") || string(made) != tc.made || !strings.Contains(string(said), tc.said) {
				t.Errorf("got %v and the program %q, want %q; it says %q, want %q", err, made, tc.made, said, tc.said)
			}
		})
	}
}
