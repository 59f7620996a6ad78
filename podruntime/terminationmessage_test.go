// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podruntime

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSecurityJ9ATerminationMessageIsOpenedOnce: a container without a file system of its own replaces its
// message file with a link to a file of the host, or with a pipe without a writer. The message is never read
// from the replacement.
func TestSecurityJ9ATerminationMessageIsOpenedOnce(t *testing.T) {
	for name, bad := range map[string]func(path, secret string) error{
		"a link": func(path, secret string) error { return os.Symlink(secret, path) },
		"a link to a message of another container": func(path, secret string) error { return os.Symlink(filepath.Base(secret), path) },
		"a pipe": func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, other, secret := filepath.Join(dir, "0"), filepath.Join(dir, "swapped"), filepath.Join(dir, "secret")
			if err := errors.Join(os.WriteFile(path, []byte("words"), 0o600), os.WriteFile(secret, []byte("secret"), 0o600), bad(other, secret)); err != nil {
				t.Fatal(err)
			}
			stop, swapped := make(chan struct{}), sync.WaitGroup{}
			defer swapped.Wait()
			defer close(stop)
			swapped.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_ = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
					}
				}
			})
			words := 0
			for range 3000 {
				said, err := readTail(path)
				if said == "words" && err == nil {
					words++
				} else if said != "" || err == nil {
					t.Fatalf("got %q, %v", said, err)
				}
			}
			if words == 0 {
				t.Error("the message was never read")
			}
		})
	}
}
