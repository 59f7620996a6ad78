// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// TestKeyPairIsReadWhenItChanges has a certificate that is read once, then replaced, then broken.
func TestKeyPairIsReadWhenItChanges(t *testing.T) {
	authority := testpki.New(t)
	k := &keyPair{}
	k.cert, k.key = authority.Issue(t, "elect")
	first, err := k.currentPair()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := k.currentPair(); again != first || err != nil {
		t.Errorf("the files have not changed, and were read again (%v)", err)
	}
	cert, key := authority.Issue(t, "elect")
	replace := func(path, by string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.Rename(by, path), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Minute)
	replace(k.cert, cert, later)
	if half, err := k.currentPair(); half != first || err != nil {
		t.Errorf("a certificate without its key: got %v, want the pair of before", err)
	}
	replace(k.key, key, later)
	if next, err := k.currentPair(); next == first || err != nil {
		t.Errorf("the pair of before serves on (%v)", err)
	}
	none := &keyPair{cert: k.cert, key: filepath.Join(t.TempDir(), "none")}
	if _, err := none.currentPair(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a key: got %v", err)
	}
}
