// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

// startCommand matches a command in a README that starts a node, with the arguments.
var startCommand = regexp.MustCompile("(?m)(?:^|[ `/])virtual-kubelet (--provider[^`\n]*)")

// TestStartCommandsOfPagesStart: the settings of the start commands on a provider's page are complete, and name the provider.
func TestStartCommandsOfPagesStart(t *testing.T) {
	for _, p := range providers() {
		for _, found := range startCommand.FindAllStringSubmatch(p.Readme, -1) {
			if args := starts(t, found[1]); args[1] != p.Name && !slices.Contains(p.Aliases, args[1]) {
				t.Errorf("provider %s: %q starts another one", p.Name, found[1])
			}
		}
	}
}

// TestStartCommandsOfTheDocsStart checks README.md and the guides in the same way.
func TestStartCommandsOfTheDocsStart(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range startCommand.FindAllStringSubmatch(string(text), -1) {
			found++
			starts(t, command[1])
		}
	}
	if found < 8 {
		t.Errorf("%d commands are found, want those of docs/migrating.md and README.md", found)
	}
}

// starts checks that settings are complete, and returns them.
func starts(t *testing.T, command string) []string {
	t.Helper()
	settings, _, _ := strings.Cut(command, "    #")
	args := strings.Fields(strings.NewReplacer("=", " ", "'", "").Replace(settings))
	cmd := cli.Program{Name: "virtual-kubelet", Providers: providers()}.Command()
	cmd.SetArgs(append([]string{"config", "print"}, args...))
	cmd.SetOut(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%q does not start: %v", command, err)
	}
	return args
}

// TestEveryProviderHasALineAndASample: `providers` prints a line about where pods run, and `providers NAME` prints a file that the provider accepts.
func TestEveryProviderHasALineAndASample(t *testing.T) {
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd := cli.Program{Name: "virtual-kubelet", Providers: providers()}.Command()
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for line := range strings.Lines(run("providers")) {
		if len(strings.Fields(line)) < 2 {
			t.Errorf("nothing is said of provider %q", line)
		}
	}
	for _, p := range providers() {
		readme, err := os.ReadFile(filepath.Join("../../providers", p.Name, "README.md"))
		if err != nil || p.Readme != string(readme) {
			t.Errorf("provider %s has another README than its folder: %v", p.Name, err)
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(run("providers", p.Name)), &head); err != nil || !strings.HasPrefix(head.APIVersion, p.Name+".virtual-kubelet.io/") || head.Kind == "" {
			t.Errorf("provider %s: its sample is of %+v, %v", p.Name, head, err)
		}
	}
}
