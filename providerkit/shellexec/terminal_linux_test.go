// SPDX-License-Identifier: Apache-2.0

package shellexec

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// onTerminal gives a command a terminal of its own, and returns the user's end of the terminal.
func onTerminal(t *testing.T, cmd *exec.Cmd) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine gives no terminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	raw, err := master.SyscallConn() // after Fd, reads would block without a way to end them
	if err != nil {
		t.Fatal(err)
	}
	var n uint32
	var failed error
	if err := raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			n, failed = unix.IoctlGetUint32(int(fd), unix.TIOCGPTN)
		}
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return master
}
