// SPDX-License-Identifier: Apache-2.0

// Command report writes what tests prove, row by row: `report faults` makes docs/reports/faults.md of the output of `go test -json`,
// `report security` makes docs/reports/security.md of the names of tests. It runs no test: `make faults` and `make security` do so first.
//
// The guarantee: it ends with an error when a row has no test, or has one that failed or was skipped, and says so in the table.
//
// What surprises: several runs of the faults may be given one after the other; the last result of a test counts.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/securityrow"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("want faults or security")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	out := flags.String("o", "docs/reports/"+args[0]+".md", "file to write")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "faults":
		return faults(os.Stdin, *out, flags.Args())
	case "security":
		return security(*out)
	}
	return fmt.Errorf("there is no page %q: want faults or security", args[0])
}

func security(out string) error {
	tree, err := repocheck.Load(".")
	if err != nil {
		return err
	}
	page, breaches := securityrow.Check(tree)
	if err := os.WriteFile(out, []byte(page), 0o644); err != nil {
		return err
	}
	if len(breaches) > 0 {
		return errors.New(strings.Join(breaches, "\n"))
	}
	return nil
}
