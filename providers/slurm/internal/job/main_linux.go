// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"os"
)

func init() {
	if len(os.Args) < 3 || os.Args[1] != Marker {
		return
	}
	var err error
	argument := append(os.Args, "")[3]
	switch os.Args[2] {
	case modeEnter:
		os.Exit(enter())
	case ModeRun:
		err = run(argument)
	case ModeStream:
		err = stream(argument)
	default:
		err = fmt.Errorf("unknown mode %q", os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
