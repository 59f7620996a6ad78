// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// New creates a namespace at path, which must not exist. Its loopback interface is up. Every user in it may
// listen on every port and send pings, which affects nothing outside.
func New(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := prepareNamespace(); err != nil {
			return err
		}
		return unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
	})
	if err != nil {
		return errors.Join(fmt.Errorf("make a network namespace: %w", err), os.Remove(path))
	}
	return nil
}

// prepareNamespace applies the settings that pods expect to the namespace of this thread.
func prepareNamespace() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("start the loopback interface: %w", err)
	}
	for file, value := range map[string]string{"ip_unprivileged_port_start": "0", "ping_group_range": "0 2147483647"} {
		// If the setting does not exist or cannot be changed, users need a capability instead.
		_ = os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0)
	}
	return nil
}

// Alive reports whether a namespace is mounted at path.
func Alive(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// Remove removes the namespace at path. The namespace exists as long as a process is in it. A missing path is no
// error.
func Remove(path string) error {
	for Alive(path) {
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("remove the network namespace %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Do calls do in the namespace at path. Goroutines that do starts run outside of the namespace.
func Do(path string, do func() error) error {
	return onThread(func() error {
		if err := Enter(path); err != nil {
			return err
		}
		return do()
	})
}

// Enter moves this thread into the namespace at path. The caller must lock the thread, and must never unlock it.
func Enter(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("enter the network namespace: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace %s: %w", path, err)
	}
	return nil
}

// onThread calls do on a new thread, which ends with the call.
func onThread(do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		result <- do()
	}()
	return <-result
}
