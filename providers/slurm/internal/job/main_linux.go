// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/enter"
)

func init() {
	if len(os.Args) < 3 || os.Args[1] != enter.Marker {
		return
	}
	var err error
	argument := append(os.Args, "")[3]
	switch os.Args[2] {
	case enter.ModeRun:
		err = run(argument)
	default:
		err = fmt.Errorf("unknown mode %q", os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
