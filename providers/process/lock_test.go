// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"syscall"
	"testing"
)

// A child process has the daemon's descriptors until its exec. A directory that the daemon has unlocked must be
// free nevertheless.
func TestDirectoryIsFreeWhileAProcessStarts(t *testing.T) {
	dir := t.TempDir()
	held, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := lockDir(dir); err == nil {
		other.Close()
		t.Error("two have the directory")
	}
	inherited, err := syscall.Dup(int(held.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	if err := unlockDir(held); err != nil {
		t.Fatal(err)
	}
	next, err := lockDir(dir)
	if err != nil {
		t.Fatalf("the directory was given up: %v", err)
	}
	if err := unlockDir(next); err != nil {
		t.Error(err)
	}
}
