// SPDX-License-Identifier: Apache-2.0

package qemu

import "syscall"

// endsWithNode ends a test boot when the node is killed: otherwise a boot that hangs would stay.
var endsWithNode = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
