// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"fmt"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

func init() {
	if len(os.Args) < 3 || os.Args[1] != enter.Marker {
		return
	}
	if os.Args[2] != enter.ModeRun { // package enter handles the other modes
		fmt.Fprintf(os.Stderr, "unknown mode %q\n", os.Args[2])
		os.Exit(1)
	}
}

// Main makes this process run a pod with run, if it was started for a host of that name, and then ends the
// process: see the documentation of the package.
func Main(host string, run func(args []string) error) {
	if len(os.Args) < 4 || os.Args[1] != enter.Marker || os.Args[2] != enter.ModeRun || os.Args[3] != host {
		return
	}
	if err := run(os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
