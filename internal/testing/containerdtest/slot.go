// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerdtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// slots is the largest number of containerds on a machine at a time.
const slots = 64

// slot is a numbered slot for one containerd. The number determines a directory, a bridge, a subnet and a
// cgroup. The holder of the lock has the slot. The kernel releases the lock when the holder dies, and the next
// holder finds the remains by the number.
type slot struct {
	number int
	dir    string
	lock   *os.File
}

// takeSlot locks the first free slot.
func takeSlot() (*slot, error) {
	for n := range slots {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("vk-containerd-%d", n))
		// The lock is beside the directory, which its owner removes.
		lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock a place for containerd: %w", err)
		}
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &slot{number: n, dir: path, lock: lock}, nil
		}
		_ = lock.Close() // this slot was not locked
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock a place for containerd: %w", err)
		}
	}
	return nil, fmt.Errorf("all %d places for a containerd in %s are taken", slots, os.TempDir())
}

func (s *slot) unlockFile() { _ = s.lock.Close() } // closing unlocks the file; the file stays, for the next lock

func (s *slot) filePath(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

// bridgeName returns the name of the bridge of all pods.
func (s *slot) bridgeName() string { return fmt.Sprintf("vkt%d", s.number) }

// subnetRange returns the subnet of the pods' addresses.
func (s *slot) subnetRange() string { return fmt.Sprintf("10.93.%d.0/24", s.number) }

// cgroupPath returns the cgroup for containers.
func (s *slot) cgroupPath() string { return fmt.Sprintf("/vk-containerd-%d", s.number) }
