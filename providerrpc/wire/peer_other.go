// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package wire

import "net"

// peerOf knows nothing here: the mode and the owner of the socket have to do.
func peerOf(*net.UnixConn) (uid int, known bool, err error) { return 0, false, nil }
