// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "syscall"

func pidNamespace() *syscall.SysProcAttr { return nil }
