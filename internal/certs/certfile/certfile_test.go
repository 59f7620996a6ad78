// SPDX-License-Identifier: Apache-2.0

package certfile

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// words accepts every content that does not begin with "bad".
func words(contents [][]byte) (string, error) {
	text := string(contents[0])
	if strings.HasPrefix(text, "bad") {
		return "", errors.New(text)
	}
	return text, nil
}

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if _, err := Follow(words, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	write(t, path, "bad start")
	if _, err := Follow(words, path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a bad file: got %v, want an error with its name", err)
	}
	write(t, path, "one")
	synctest.Test(t, func(t *testing.T) {
		f, err := Follow(words, path)
		if err != nil {
			t.Fatal(err)
		}
		before := "one"
		for _, step := range []struct {
			do        func()
			want, err string
		}{
			{func() {}, "one", ""},
			{func() { write(t, path, "two") }, "two", ""},
			{func() { write(t, path, "bad 3") }, "two", "bad 3"},
			{func() {}, "two", ""}, // it was reported
			{func() { write(t, path, "bad 4") }, "two", "bad 4"},
			{func() { _ = os.Remove(path) }, "two", "no such file"},
			{func() {}, "two", ""},
			{func() { write(t, path, "two") }, "two", ""},
			{func() { write(t, path, "five") }, "five", ""},
		} {
			step.do()
			if got, err := f.Current(); err != nil || got != before {
				t.Errorf("at once: got %q, error %v, want %q", got, err, before)
			}
			before = step.want
			time.Sleep(lookEvery)
			got, err := f.Current()
			if got != step.want || (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
				t.Errorf("got %q, error %v; want %q, error %q", got, err, step.want, step.err)
			}
		}
	})
}

// TestKeyPairThatDoesNotFit: between the replacements of certificate and key, the pair does not match, and the
// last matching pair stays in use.
func TestKeyPairThatDoesNotFit(t *testing.T) {
	ca, dir, next := testpki.New(t), t.TempDir(), t.TempDir()
	cert, key := ca.IssueInto(t, dir, "n1")
	newCert, newKey := ca.IssueInto(t, next, "n1")
	f, err := KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	f.every = 0
	serial := func() string {
		pair, _ := f.Current()
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.String()
	}
	before := serial()
	for _, step := range []struct {
		from, to string
		same     bool
	}{{newCert, cert, true}, {newKey, key, false}} {
		if err := os.Rename(step.from, step.to); err != nil {
			t.Fatal(err)
		}
		if got := serial(); (got == before) != step.same {
			t.Errorf("after %s was replaced: certificate %s, before %s", step.to, got, before)
		}
	}
}
