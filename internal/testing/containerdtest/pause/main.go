// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command pause is the program of sandboxes in tests: it keeps the namespaces of a pod and, in pods with one
// process namespace, reaps orphaned processes.
//
// Note: it ends with 0 on a signal, because runtimes show the exit code of a sandbox nowhere. With the
// argument "deaf" it ignores the signal.
package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			if slices.Contains(os.Args, "deaf") {
				continue
			}
			return
		}
		for {
			// One signal may stand for several children.
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
