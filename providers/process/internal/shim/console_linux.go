// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// consoleTime limits the wait for the terminal after the runtime has ended.
const consoleTime = 5 * time.Second

// console is the socket on which the runtime sends the terminal that it has created in the container.
type console struct{ *net.UnixListener }

func listenConsole(path string) (*console, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	return &console{l}, nil
}

// receiveTerminal receives the terminal.
func (c *console) receiveTerminal() (*os.File, error) {
	fail := func(err error) (*os.File, error) {
		return nil, fmt.Errorf("receive the terminal of the process: %w", err)
	}
	late := time.Now().Add(consoleTime)
	if err := c.SetDeadline(late); err != nil {
		return fail(err)
	}
	conn, err := c.AcceptUnix()
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(late); err != nil {
		return fail(err)
	}
	name, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(name, rights)
	if err != nil {
		return fail(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return fail(err)
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil || len(fds) != 1 {
			continue
		}
		unix.CloseOnExec(fds[0])
		// A non-blocking file supports deadlines, which interrupt reads.
		if err := unix.SetNonblock(fds[0], true); err != nil {
			unix.Close(fds[0])
			return fail(err)
		}
		return os.NewFile(uintptr(fds[0]), "terminal"), nil
	}
	return fail(errors.New("the runtime did not send it"))
}
