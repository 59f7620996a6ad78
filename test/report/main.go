// SPDX-License-Identifier: Apache-2.0

// Command report writes pages about tests, row by row: `report faults` makes docs/reports/faults.md of the output of `go test -json`,
// `report security` and `report field` make docs/reports/security.md and docs/reports/field.md of the names of tests. It runs no test: the
// targets of make do so first. `report order DIR...` prints the order of the files of packages, and the upward arrows in it.
//
// The guarantee: it ends with an error when a row has no test, or has a failed or skipped test, and shows that
// in the table.
//
// Note: several runs of the faults may be given; the last result of a test counts.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/fieldrow"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/securityrow"
)

func main() {
	if err := runReport(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func runReport(args []string) error {
	if len(args) == 0 {
		return errors.New("want faults, security, field or order")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	out := flags.String("o", "docs/reports/"+args[0]+".md", "file to write")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "faults":
		return reportFaults(os.Stdin, *out, flags.Args())
	case "security":
		return writeRows(*out, securityrow.Check)
	case "field":
		return writeRows(*out, fieldrow.Check)
	case "order":
		return printOrder(flags.Args())
	}
	return fmt.Errorf("there is no page %q: want faults, security, field or order", args[0])
}

// printOrder prints the order of the files of packages.
func printOrder(dirs []string) error {
	if len(dirs) == 0 {
		return errors.New("print the order of files: want the folders of packages")
	}
	tree, err := repocheck.Load(".")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		o := tree.FileOrder(path.Clean(dir))
		if len(o.Files) == 0 {
			return fmt.Errorf("print the order of %s: there is no package in this folder of the repository", dir)
		}
		fmt.Print(o)
	}
	return nil
}

// writeRows writes the page of a table with its rows in the names of tests.
func writeRows(out string, check func(*repocheck.Tree) (page string, breaches []string)) error {
	tree, err := repocheck.Load(".")
	if err != nil {
		return err
	}
	page, breaches := check(tree)
	if err := os.WriteFile(out, []byte(page), 0o644); err != nil {
		return err
	}
	if len(breaches) > 0 {
		return errors.New(strings.Join(breaches, "\n"))
	}
	return nil
}
