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

// startCommand matches a command of a README that starts a node, with what follows the name of the program.
var startCommand = regexp.MustCompile("(?:^|[ `/])virtual-kubelet (--provider[^`\n]*)")

// TestStartCommandsOfPagesStart: the settings that a provider's page starts a node with are complete, and name the provider.
func TestStartCommandsOfPagesStart(t *testing.T) {
	for _, p := range providers() {
		for _, found := range startCommand.FindAllStringSubmatch(p.Readme, -1) {
			args := strings.Fields(strings.ReplaceAll(found[1], "=", " "))
			if args[1] != p.Name && !slices.Contains(p.Aliases, args[1]) {
				t.Errorf("provider %s: %q starts another one", p.Name, found[1])
			}
			cmd := cli.Program{Name: "virtual-kubelet", Providers: providers()}.Command()
			cmd.SetArgs(append([]string{"config", "print"}, args...))
			cmd.SetOut(io.Discard)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Errorf("provider %s: %q does not start: %v", p.Name, found[1], err)
			}
		}
	}
}

// TestEveryProviderHasALineAndASample: `providers` says in a line where pods run, and `providers NAME` prints a file that the provider takes for its own.
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
