// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command generate writes the compiled seccomp filters of gVisor's sandboxes, for the options that provider process starts them
// with. It takes a minute or two: gVisor compiles those for all options.
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

// used is what the options of the sandboxes have in common: the platform that works everywhere, and no devices of the machine.
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
	var lines []string // a line for each program
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

// ownPID makes variables of the places where the program has the id of this process. The rules of systrap take it from the process
// that compiles, where it should be that of the sandbox.
func ownPID(p precompiledseccomp.Program) {
	const name = "self_pid_low32bits"
	for i, word := range p.Bytecode32 {
		if word == uint32(os.Getpid()) {
			p.VarOffsets[name] = append(p.VarOffsets[name], i)
			p.Bytecode32[i] = 0 // the file is the same each time
		}
	}
}

// isUsed reports whether provider process starts sandboxes with these options.
func isUsed(name string) bool {
	for _, option := range used {
		if !strings.Contains(name, option) {
			return false
		}
	}
	return true
}
