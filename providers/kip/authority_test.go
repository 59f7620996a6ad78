// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAuthorityThatIsNotThereYet: a link to a missing key, as of a volume that is not mounted, is an error. No new key takes its place.
func TestAuthorityThatIsNotThereYet(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "authority.pem")
	if err := os.Symlink(filepath.Join(dir, "volume", "authority.pem"), path); err != nil {
		t.Fatal(err)
	}
	if _, made, err := openAuthority(path); err == nil || made {
		t.Errorf("got an authority, made: %t", made)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
