// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// nobody is the UID and the GID of the process if root starts it.
	nobody = 65534
	// ownFiles is the number of descriptors reserved for the process: log, listener, poll, routes, and
	// connections of the daemon.
	ownFiles = 128
	// bindService is the capability to listen on ports below 1024, which pods may request as hostPort. The
	// process keeps it if it has it.
	bindService = 1 << unix.CAP_NET_BIND_SERVICE
)

// raiseFiles raises the limit of descriptors as far as allowed, and returns the number of descriptors for pods.
func raiseFiles() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of file descriptors: %w", err)
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raise the limit of file descriptors: %w", err)
	}
	return int(min(limit.Max, math.MaxInt32)) - ownFiles, nil
}

// restrictProcess drops all capabilities but bindService, and all system calls that the process does not need.
func restrictProcess() error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	if err := dropRights(); err != nil {
		return err
	}
	return installFilter()
}

// dropRights changes the user to nobody if root started the process, and drops all capabilities but bindService.
func dropRights() error {
	header, has := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &has[0]); err != nil {
		return fmt.Errorf("read the capabilities of the process: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := changeUser(); err != nil {
			return fmt.Errorf("change to user %d: %w", nobody, err)
		}
	}
	keep := has[0].Permitted & bindService
	want := [2]unix.CapUserData{{Effective: keep, Permitted: keep}}
	if err := everyThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&want[0]))); err != nil {
		return fmt.Errorf("drop the capabilities of the process: %w", err)
	}
	if err := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// changeUser changes user and groups, and keeps the capabilities, which are dropped next. If root cannot change
// its user, as in a user namespace without other users, the process stays root.
func changeUser() error {
	// An error means that the capability does not exist, or that the process may not drop it and therefore has
	// none.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if c != unix.CAP_NET_BIND_SERVICE {
			_ = everyThread(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c)
		}
	}
	if err := everyThread(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1); err != nil {
		return err
	}
	for _, change := range []func() error{
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setresgid(nobody, nobody, nobody) },
		func() error { return syscall.Setresuid(nobody, nobody, nobody) },
	} {
		if err := change(); err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}

// everyThread makes a system call in each thread of the process, because capabilities belong to threads.
func everyThread(trap, a, b uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall(trap, a, b, 0); errno != 0 {
		return errno
	}
	return nil
}
