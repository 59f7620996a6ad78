// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command generate writes the compiled seccomp filters for the sandbox options that the process provider uses. It
// takes a minute or two, because gVisor compiles the filters for all options.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/runsc/boot/filter/config"
)

// used are the options that all sandboxes have in common: the platform that works everywhere, and no devices of
// the machine.
var used = []string{`Platform="systrap"`, "NVProxy=false", "TPUProxy=false", "RDMAProxy=false"}

func main() {
	path := flag.String("o", "", "the `file` that is written")
	flag.Parse()
	if err := writePrograms(*path); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func writePrograms(path string) error {
	programs, err := config.PrecompiledPrograms()
	if err != nil {
		return err
	}
	var lines []string // one line for each filter
	for _, p := range programs {
		if !isUsed(p.Name) {
			continue
		}
		ownPID(p)
		line, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("write the program %s: %w", p.Name, err)
		}
		lines = append(lines, string(line))
	}
	return os.WriteFile(path, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}

// ownPID replaces the PID of this process in the filter by a variable. gVisor's systrap rules contain the PID of
// the compiling process, but need the PID of the sandbox.
func ownPID(p precompiledseccomp.Program) {
	const name = "self_pid_low32bits"
	for i, word := range p.Bytecode32 {
		if word == uint32(os.Getpid()) {
			p.VarOffsets[name] = append(p.VarOffsets[name], i)
			p.Bytecode32[i] = 0 // makes the output reproducible
		}
	}
}

// isUsed reports whether the process provider uses the options with this name.
func isUsed(name string) bool {
	for _, option := range used {
		if !strings.Contains(name, option) {
			return false
		}
	}
	return true
}
