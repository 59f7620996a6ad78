// SPDX-License-Identifier: Apache-2.0

package imageref

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

// TestNamesOfOneLetterAreNames checks names of one letter, which container runtimes accept.
func TestNamesOfOneLetterAreNames(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"nosuch.invalid/x:1":         "nosuch.invalid/x:1",
		"nosuch.invalid:5000/x":      "nosuch.invalid:5000/x:latest",
		"x":                          "index.docker.io/library/x:latest",
		"x:1":                        "index.docker.io/library/x:1",
		"a.example/x@" + digest:      "a.example/x@" + digest,
		"a.example/x:1@" + digest:    "a.example/x@" + digest,
		"a.example/team/x:1":         "a.example/team/x:1",
		"busybox":                    "index.docker.io/library/busybox:latest",
		"a.example/X:1":              "",
		"a.example/x:":               "",
		"a.example/x@sha256:" + "00": "",
		"":                           "",
		"--root=r.example:1/x":       "",
		"docker-archive:/x":          "",
	} {
		got, err := Parse(text)
		if (err == nil) != (want != "") || err == nil && got.Name() != want {
			t.Errorf("%q: got %v, %v, want %q", text, got, err, want)
		}
	}
	if got, err := Parse("a.example/x:1", name.Insecure); err != nil || got.Context().Scheme() != "http" {
		t.Errorf("an insecure registry: got %v, %v", got, err)
	}
}
