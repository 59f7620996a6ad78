// SPDX-License-Identifier: Apache-2.0

// Package box runs a program in namespaces of its own: processes, network, mounts, IPC and host name.
//
// The guarantee: when the program ends for any reason, it leaves nothing. The end of its first process ends all other processes, and
// removes its mounts and its network, which cannot reach other machines.
//
// Note: cgroups outlive processes, so the caller's process removes the cgroups of a box at the end. And /run is empty, because
// container runtimes keep sockets at fixed paths in it.
package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Address is the address of the machine in a box, on an interface other than the loopback interface. SecondAddress is for a second
// machine (see [Machine]). Both are from a range for documentation, and reach nothing outside.
const (
	Address       = "192.0.2.2"
	SecondAddress = "192.0.2.3"
)

// first is the argument of the first process of a box.
const first = "box-first-process"

// Run runs this program with the arguments in a box, until the program or ctx ends. It makes the cgroup for the containers inside in
// each hierarchy, and removes it with all cgroups below it.
func Run(ctx context.Context, hostname, cgroup string, args ...string) (err error) {
	// The signal for the death of the parent is sent when the child's starting thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := MakeCgroup(cgroup); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeCgroups(cgroup)) }()
	c := exec.CommandContext(ctx, "/proc/self/exe", append([]string{first, hostname}, args...)...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := c.Run(); err != nil {
		return fmt.Errorf("run in namespaces of its own: %w", err)
	}
	return nil
}

// IsFirst reports whether this process is the first process of a box. If so, main must only call [First].
func IsFirst() bool { return len(os.Args) > 2 && os.Args[1] == first }

// First is the first process of a box: it prepares the namespaces, starts this program with the arguments, and
// reaps orphaned processes, until the program has ended. It returns the exit code.
func First() int {
	if err := prepareNamespaces(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance: prepare the namespaces:", err)
		return 1
	}
	child, err := os.StartProcess("/proc/self/exe", append([]string{os.Args[0]}, os.Args[3:]...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return 1
	}
	forwardSignals(child)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			fmt.Fprintln(os.Stderr, "conformance: wait for a process:", err)
			return 1
		case pid == child.Pid && status.Exited():
			return status.ExitStatus()
		case pid == child.Pid:
			return 1
		}
	}
}

// prepareNamespaces gives the namespaces the usual settings of a machine.
func prepareNamespaces(hostname string) error {
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		// Mounts of containers must be visible to the node, and nowhere outside.
		{"", "/", "", unix.MS_REC | unix.MS_SHARED},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	// The two interfaces are connected to each other, so an address on them is up and reaches nothing.
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "node0", "type", "veth", "peer", "name", "node1"},
		{"address", "add", Address + "/24", "dev", "node0"},
		{"link", "set", "node0", "up"},
		{"link", "set", "node1", "up"},
		{"route", "add", "default", "dev", "node0"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil { //nolint:noctx // the process ends with its namespaces
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// Machine makes the network of another machine with that address, connected to this machine's, and returns the
// file of its network namespace. Everything else is shared. It can be called once.
func Machine(ctx context.Context, name, address string) (string, error) {
	file := "/run/netns/" + name
	inside := []string{"nsenter", "--net=" + file}
	for _, argv := range [][]string{
		{"ip", "netns", "add", name},
		{"ip", "link", "set", "node1", "netns", name},
		append(inside, "ip", "link", "set", "lo", "up"),
		append(inside, "ip", "address", "add", address+"/24", "dev", "node1"),
		append(inside, "ip", "link", "set", "node1", "up"),
		append(inside, "ip", "route", "add", "default", "dev", "node1"),
		append(inside, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"),
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("make the network of %s: %v: %w: %s", name, argv, err, out)
		}
	}
	return file, nil
}

// Resolver makes file the DNS configuration of the programs inside.
func Resolver(file string) error {
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return fmt.Errorf("find the configuration of the resolver: %w", err)
	}
	if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}
