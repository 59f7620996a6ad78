// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
)

// programFiles has the filters of sandboxes, in one file for each architecture. `go generate` writes the file for
// the architecture that it runs on.
//
//go:embed programs_*.json
var programFiles embed.FS

// readPrograms returns the filters for this architecture. Without a file it returns none, and gVisor compiles
// them at each start. TestPrograms compares them with gVisor's filters.
func readPrograms() (programs []precompiledseccomp.Program, err error) {
	data, err := programFiles.ReadFile("programs_" + runtime.GOARCH + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &programs)
	}
	if err != nil {
		return nil, fmt.Errorf("read the seccomp filters of sandboxes for %s: %w", runtime.GOARCH, err)
	}
	return programs, nil
}
