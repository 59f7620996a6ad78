// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

func pidNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
}
