// SPDX-License-Identifier: Apache-2.0

// Command supervisor is provider process's process for each container, as a separate program without the parts
// of the daemon. The whole program would take 15 ms of CPU at each start, and memory for as long as the
// container runs. Beside the daemon the program is named virtual-kubelet-container. Without it the daemon's own
// program does the same.
package main

import (
	"fmt"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim" // in a shim, the init function of this package ends the process
)

func main() {
	fmt.Fprintf(os.Stderr, "%s is run by provider process of virtual-kubelet only, for each container\n", shim.Argv0)
	os.Exit(1)
}
