// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package qemu

import "syscall"

var endsWithNode *syscall.SysProcAttr // there is no KVM
