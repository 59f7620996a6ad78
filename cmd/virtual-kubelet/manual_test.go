// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

var manual = flag.String("manual", "", "write the manual into this `folder`: man pages, and the same as Markdown")

// TestManualHasEveryCommand generates the manual of the program, with a page for each command. The program does not generate it, because cobra's
// documents need templates, which make the linker keep the methods of all types.
func TestManualHasEveryCommand(t *testing.T) {
	dir := *manual
	if dir == "" {
		dir = t.TempDir()
	} else if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", "/root") // the default of --kubeconfig
	root := cli.Program{Name: "virtual-kubelet", Version: buildVersion, Providers: providers(), Commands: commands()}.Command()
	root.DisableAutoGenTag = true
	released := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // the pages of two builds are identical
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &released, Source: "Virtual Kubelet", Manual: "Virtual Kubelet"}, dir); err != nil {
		t.Fatal(err)
	}
	if err := doc.GenMarkdownTree(root, dir); err != nil {
		t.Fatal(err)
	}
	pages := 0
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c != root || c.IsAdditionalHelpTopicCommand() {
			return
		}
		for _, name := range []string{strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1", strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), c.Short) {
				t.Errorf("%s: %v, want a page that says %q", name, err, c.Short)
			}
			pages++
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(root)
	if pages < 2*8 {
		t.Errorf("there are %d pages, want those of all commands", pages)
	}
}
