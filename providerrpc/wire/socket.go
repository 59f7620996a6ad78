// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net"
	"os"
)

// CheckSocket returns an error if path is not a socket, or if users other than root and the user of this process
// own it or may connect to it.
func CheckSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("socket of the plugin: %w", err)
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is no socket but %s: give the path that the plugin listens on", path, info.Mode().Type())
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("socket %s has the mode %#o, so that others than its owner can connect: want 0600", path, perm)
	}
	uid, known := ownerOf(info)
	if known && !isTrusted(uid) {
		return fmt.Errorf("socket %s belongs to the user %d: want the user %d of this process, or root", path, uid, os.Geteuid())
	}
	return nil
}

// CheckPeer returns an error if the process at the other end does not belong to root or to the user of this
// process.
func CheckPeer(conn *net.UnixConn) error {
	uid, known, err := peerOf(conn)
	if err != nil {
		return fmt.Errorf("find out who is at the other end of %s: %w", conn.RemoteAddr(), err)
	}
	if known && !isTrusted(uid) {
		return fmt.Errorf("the process at the other end of socket %s is of the user %d: want the user %d of this process, or root",
			conn.RemoteAddr(), uid, os.Geteuid())
	}
	return nil
}

func isTrusted(uid int) bool { return uid == 0 || uid == os.Geteuid() }
