// SPDX-License-Identifier: Apache-2.0

// Command report writes docs/reports/security.md: the promises about security, with the tests of
// this tree that hold them. It runs none of them; `make security` does so first.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/securityrow"
)

func main() {
	out := flag.String("o", "docs/reports/security.md", "file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	tree, err := repocheck.Load(".")
	if err != nil {
		return err
	}
	page, breaches := securityrow.Check(tree)
	if err := os.WriteFile(out, []byte(page), 0o644); err != nil {
		return err
	}
	if len(breaches) > 0 {
		return fmt.Errorf("%s", strings.Join(breaches, "\n"))
	}
	return nil
}
