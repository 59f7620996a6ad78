// SPDX-License-Identifier: Apache-2.0

// Command supervisor is the process that provider process has for each container, as a program of its own, without all that the daemon
// is made of: that takes 15 ms of CPU at each start of the whole program, and memory for as long as the container runs. Beside
// the daemon it is named virtual-kubelet-container; without it the daemon's own program does the same.
package main

import (
	"fmt"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim" // which ends the process if it is one
)

func main() {
	fmt.Fprintf(os.Stderr, "%s is run by provider process of virtual-kubelet only, for each container\n", shim.Argv0)
	os.Exit(1)
}
