// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestProgramsOfARelease: make up uses the files of a release if they exist, and otherwise builds the programs.
// A damaged file is an error.
func TestProgramsOfARelease(t *testing.T) {
	platform := runtime.GOOS + "_" + runtime.GOARCH
	const program = "#!/bin/sh\necho released\n"
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
	for name, tc := range map[string]struct {
		files map[string]string
		made  string // the content of the program, "" for no program
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

// TestProgramsOfAMirror: with the URL of a release, make up takes programs from there and verifies them with a
// known checksum. Without a release or a file there, it builds the programs.
func TestProgramsOfAMirror(t *testing.T) {
	platform := runtime.GOOS + "_" + runtime.GOARCH
	const program = "#!/bin/sh\necho released\n"
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
	sums := sum(program) + "  foo_v1.2.3_" + platform + "\n"
	files := map[string]string{"/SHA256SUMS": sums, "/foo_v1.2.3_" + platform: program}
	described := sums + sum("{}") + "  foo_v1.2.3_" + platform + ".spdx.json\n"
	with := func(path, content string) map[string]string {
		all := maps.Clone(files)
		all[path] = content
		return all
	}
	without := func(path string) map[string]string {
		all := maps.Clone(files)
		delete(all, path)
		return all
	}
	for name, tc := range map[string]struct {
		files      map[string]string
		pin        string
		made, said string
	}{
		"whole":                    {files, sum(sums), program, "foo_v1.2.3_" + platform + " of the release"},
		"described, too":           {with("/SHA256SUMS", described), sum(described), program, "foo_v1.2.3_" + platform + " of the release"},
		"no release":               {nil, sum(sums), "built\n", "does not have the release: it is built"},
		"no file":                  {without("/foo_v1.2.3_" + platform), sum(sums), "built\n", "it is built"},
		"no checksum":              {files, "", "", "set RELEASE_SHA256"},
		"checksums of another":     {with("/SHA256SUMS", sums+sums), sum(sums), "", "are not those of RELEASE_SHA256"},
		"another file of the name": {with("/foo_v1.2.3_"+platform, "echo evil"), sum(sums), "", "is not what its SHA256SUMS says"},
	} {
		t.Run(name, func(t *testing.T) {
			mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				content, there := tc.files[r.URL.Path]
				if !there {
					http.NotFound(w, r)
					return
				}
				_, _ = io.WriteString(w, content) // a client that is gone sees no file
			}))
			defer mirror.Close()
			// The script keeps the downloaded files below its own folder.
			root := t.TempDir()
			script, err := os.ReadFile("../hack/released.sh")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(root, "hack"), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "hack", "released.sh"), script, 0o600); err != nil {
				t.Fatal(err)
			}
			output := filepath.Join(root, "bin", "foo")
			cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "hack", "released.sh"), output, "sh", "-c", `mkdir -p "$(dirname "$0")" && echo built >"$0"`, output)
			cmd.Env = append(os.Environ(), "RELEASE="+mirror.URL, "RELEASE_SHA256="+tc.pin)
			said, err := cmd.CombinedOutput()
			made, _ := os.ReadFile(output)
			if (err == nil) != (tc.made != "") || string(made) != tc.made || !strings.Contains(string(said), tc.said) {
				t.Errorf("got %v and the program %q, want %q; it says %q, want %q", err, made, tc.made, said, tc.said)
			}
		})
	}
}
