// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "syscall"

func newSession() *syscall.SysProcAttr { return nil }
