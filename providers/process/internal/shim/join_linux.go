// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// join brings this thread into the namespaces of the main process.
func (s *supervisor) join() error {
	pid := s.state.Init.PID
	switch {
	case s.spec.Isolation == Chroot:
		return enterRoot(rootDir)
	case !s.spec.Isolation.Namespaces():
		return nil
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leave the directory of the shim: %w", err)
	}
	// All are opened before the first is entered: then /proc is another one.
	type ns struct {
		name string
		flag int
		fd   int
	}
	all := []ns{{"uts", unix.CLONE_NEWUTS, 0}, {"ipc", unix.CLONE_NEWIPC, 0}, {"pid", unix.CLONE_NEWPID, 0}, {"mnt", unix.CLONE_NEWNS, 0}}
	if s.spec.NetNS != "" {
		all = append(all, ns{"net", unix.CLONE_NEWNET, 0})
	}
	for i := range all {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, all[i].name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("find the %s namespace of the container: %w", all[i].name, err)
		}
		defer unix.Close(fd)
		all[i].fd = fd
	}
	for _, n := range all {
		if err := unix.Setns(n.fd, n.flag); err != nil {
			return fmt.Errorf("enter the %s namespace of the container: %w", n.name, err)
		}
	}
	return nil
}

func joinNamespace(pid int, name string, flag int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("find the %s namespace of process %d: %w", name, pid, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, flag); err != nil {
		return fmt.Errorf("enter the %s namespace of process %d: %w", name, pid, err)
	}
	return nil
}

// enterRoot makes dir the root of this thread only.
func enterRoot(dir string) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leave the directory of the shim: %w", err)
	}
	if err := unix.Chroot(dir); err != nil {
		return fmt.Errorf("change the root to %s: %w", dir, err)
	}
	return unix.Chdir("/")
}
