// SPDX-License-Identifier: Apache-2.0

// Command supervisor is the supervisor process that the process provider runs for each container, as a separate
// small program. The daemon's binary would take 15 ms of CPU at each start, and more memory as long as the
// container runs. The program must be in the directory of the daemon, under the name virtual-kubelet-container.
// Otherwise the daemon's binary is used.
package main

import (
	"fmt"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim" // in a shim, the init function of this package runs the shim and exits
)

func main() {
	fmt.Fprintf(os.Stderr, "%s is run by provider process of virtual-kubelet only, for each container\n", shim.Argv0)
	os.Exit(1)
}
