// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package shim

import (
	"context"
	"errors"
	"os"
	"syscall"
)

var errUnsupported = errors.New("the process provider is not supported on this operating system")

// Program returns an error: shims are not supported on this operating system.
func Program() error { return errUnsupported }

func program() (string, error) { return "", errUnsupported }

func openLast(_, path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
}

// Self returns this process.
func Self() Process { return Process{} }

// ProcessOf returns the process that currently has the PID.
func ProcessOf(int) Process { return Process{} }

// Alive reports whether the process still exists.
func (Process) Alive() bool { return false }

// KillProcess kills a process.
func KillProcess(Process) error { return errUnsupported }

// Descendants returns the descendants of a process.
func Descendants(int) []int { return nil }

func waitGone(context.Context, Process) error { return nil }

func socketPath(string) (string, func(), error) { return "", nil, errUnsupported }

func detachedAttributes() *syscall.SysProcAttr { return nil }

// Add moves a process into the group.
func (Cgroup) Add(int) error { return nil }

// Remove removes the cgroups.
func (Cgroup) Remove() error { return nil }

// UnmountRoot does nothing on this operating system.
func UnmountRoot(string) error { return nil }
