// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const glossaryText = "# Words\n\n| Word | Means |\n|---|---|\n| lane | a queue |\n\n## Not\n\n| Say | Not |\n|---|---|\n| queue | waiting line, pipe |\n"

func TestOldWordsAreFound(t *testing.T) {
	words := oldWords(glossaryText)
	for text, want := range map[string]bool{
		"a pipe.": true, "Pipes": true, "piped": false, "pipeline": false, "pipe_of": true, "pipeOf": true, "bigPipe": true, "PipesOfAll": true,
		"`PIPE`": true, "bagpipe": false, "Waiting\nline": true, "waiting-lines": true, "waitingLine": true, "TestWaitingLineIsShort": true,
		"WAITING_LINE": true, "waiting in line": false, "lane": false, "pipe1": true,
		"// a waiting\n\t\t// line": true, "# the waiting\n# line": true, "/* waiting\n * line */": true, "> a waiting\n> line": true,
		"//\twaiting\n//\tline": true, "waiting // line": false, "waiting\n//\n// line": false,
	} {
		got := false
		for _, w := range words {
			got = got || w.placesIn("x.go", []byte("first\n"+text)) != nil
		}
		if got != want {
			t.Errorf("%q: found %v, want %v", text, got, want)
		}
	}
}

// TestWordsReadsTheRepository: old words in a repository are found.
func TestWordsReadsTheRepository(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/a\n", "docs/glossary.md": glossaryText, "a.go": "package a\n\nvar pipe, Waitingline int // no pipes\n",
		"pipe.txt": "good", "deep/down/page.md": "one\ntwo\na waiting line\n", "kept.txt": "pipe", "picture": "pipe\x00", "go.sum": "pipe",
		"out/x": "pipe", ".gitignore": "out/\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.Words(t.Context(), "docs/glossary.md", []Said{{File: "kept.txt", Word: "pipe"}, {File: "a.go", Word: "waiting line"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`a.go:3: "pipe": say "queue"`,
		`a.go:3: "pipe": say "queue"`,
		`deep/down/page.md:3: "waiting line": say "queue"`,
		`pipe.txt: its name has "pipe": say "queue"`,
		`a.go: "waiting line" may stand there and does not: take it off the list`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
	if got, err := tree.Words(t.Context(), "a.go", nil); err != nil || len(got) != 1 {
		t.Errorf("without a table: got %q, %v", got, err)
	}
}
