// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/interp"
)

func TestShell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("echo file $1; false"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		command bool
		args    []string
		input   string
		want    string
		code    interp.ExitStatus
	}{
		"command": {command: true, args: []string{"for n in $@; do echo $n; done; exit 3", "sh", "a", "b"}, want: "a\nb\n", code: 3},
		"file":    {args: []string{file, "a"}, want: "file a\n", code: 1},
		"input":   {input: "echo one | while read x; do echo $x two; done", want: "one two\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := filepath.Join(t.TempDir(), "in")
			if err := os.WriteFile(in, []byte(tt.input), 0o600); err != nil {
				t.Fatal(err)
			}
			stdin, err := os.Open(in)
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			var out strings.Builder
			err = runShell(tt.command, tt.args, stdin, &out, &out)
			var code interp.ExitStatus
			if err != nil && !errors.As(err, &code) {
				t.Fatal(err)
			}
			if out.String() != tt.want || code != tt.code {
				t.Errorf("got %q, %d, want %q, %d", out.String(), code, tt.want, tt.code)
			}
		})
	}
}
