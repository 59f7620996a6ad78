// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

func peerOf(conn *net.UnixConn) (uid int, known bool, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, credErr); err != nil {
		return 0, false, err
	}
	return int(cred.Uid), true, nil
}
