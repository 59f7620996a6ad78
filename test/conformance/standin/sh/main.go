// SPDX-License-Identifier: Apache-2.0

// Command sh is the shell of the images that stand in for busybox: Debian's busybox shell, except for exactly
// `sh -c env`. Debian's shell does not pass on variables whose names have a dash. Upstream's shell does, and
// three tests check it. So for that one command line, this program starts env itself.
package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
)

const busybox = "/bin/busybox"

func main() {
	args := append([]string{"/bin/sh"}, os.Args[1:]...)
	if slices.Equal(os.Args[1:], []string{"-c", "env"}) {
		args = []string{"env"}
	}
	err := syscall.Exec(busybox, args, os.Environ())
	fmt.Fprintln(os.Stderr, "sh: start", busybox+":", err)
	os.Exit(127)
}
