// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// generate runs the command like a user, and returns the commands that it prints.
func generate(t *testing.T, dir string, args ...string) (next []string) {
	t.Helper()
	root := &cobra.Command{Use: "vk"}
	root.AddCommand(Command("development"))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"new-provider", "--name", "foo", "--replace", tree(t).Tree, dir}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if command, is := strings.CutPrefix(line, "  "); is {
			next = append(next, strings.TrimSpace(command))
		}
	}
	if len(next) != 2 {
		t.Fatalf("want two commands: %s", out.String())
	}
	return next
}

// shell runs a script.
func shell(t *testing.T, dir, script string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as programs are built, so that the build cache has the packages
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var green = regexp.MustCompile(`contract: ([0-9]+) checks passed, 0 failed`)

// keepsTheContract runs the commands that new-provider prints, and returns the folder of the provider.
func keepsTheContract(t *testing.T, args ...string) string {
	t.Helper()
	for _, program := range []string{"go", "make"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	dir := filepath.Join(t.TempDir(), "vk foo")
	next := generate(t, dir, args...)
	out, err := shell(t, filepath.Dir(dir), strings.Join(next, " && "))
	if err != nil || green.FindString(out) == "" {
		t.Fatalf("%s: %v: %s", strings.Join(next, " && "), err, out)
	}
	t.Log(green.FindString(out))
	return dir
}

func TestNewProviderInGo(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a provider")
	}
	dir := keepsTheContract(t, "--module", "example.com/me/vk-foo")
	if out, err := shell(t, dir, "go test ./... && make build && bin/vk-foo providers"); err != nil || !strings.HasSuffix(out, "\nfoo\n") {
		t.Errorf("got %v: %s", err, out)
	}
	tidied := read(t, filepath.Join(dir, "go.mod"))
	if out, err := shell(t, dir, "go mod tidy"); err != nil || read(t, filepath.Join(dir, "go.mod")) != tidied {
		t.Errorf("go.mod is not tidy: %v: %s", err, out)
	}
	failsUntilFilled(t, dir)
}

func TestNewProviderInPython(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a provider")
	}
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import grpc, google.protobuf").CombinedOutput(); err != nil {
		t.Skipf("no python3 with grpc and protobuf: apt-get install python3-grpcio: %s", out)
	}
	dir := keepsTheContract(t, "--language", "python")
	if out, err := shell(t, dir, "/usr/bin/python3 -m unittest test_plugin"); err != nil {
		t.Errorf("got %v: %s", err, out)
	}
	failsUntilFilled(t, dir)
}

// failsUntilFilled checks that filled.sh fails until all FILL marks are removed and all boxes are ticked.
func failsUntilFilled(t *testing.T, dir string) {
	t.Helper()
	names := map[string]bool{}
	for _, m := range box.FindAllStringSubmatch(read(t, filepath.Join(dir, "README.md")), -1) {
		names[m[1]] = true
	}
	out, err := shell(t, dir, "./filled.sh")
	for name := range names {
		if n := strings.Count(out, "FILL("+name+")"); err == nil || n != 2 {
			t.Errorf("%s is listed %d times, want its mark and its box (%v): %s", name, n, err, out)
		}
	}
	for _, script := range []string{
		`find . -name '*.go' -o -name '*.py' -o -name '*.yaml' -o -name go.mod | xargs sed -i '/FILL(/d'`,
		`sed -i '0,/- \[ \]/s//- [x]/' README.md`,
	} {
		if out, err := shell(t, dir, script+" && ! ./filled.sh"); err != nil {
			t.Errorf("after %s: %v: %s", script, err, out)
		}
	}
	if out, err := shell(t, dir, `sed -i 's/- \[ \]/- [x]/' README.md && ./filled.sh`); err != nil {
		t.Errorf("everything is filled in: %v: %s", err, out)
	}
}

// TestCommandSaysWhatIsWrong: after an error, no files are written. The help has no flags of nodes.
func TestCommandSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no folder":   {[]string{"--module", "example.com/me/vk-foo", "--name", "foo"}, "new-provider: got 0 folders"},
		"two folders": {[]string{"--module", "example.com/me/vk-foo", "--name", "foo", dir + "/a", dir + "/b"}, "got 2 folders"},
		"bad name":    {[]string{"--module", "example.com/me/vk-foo", "--name", "Foo", "--replace", tree(t).Tree, dir + "/a"}, "new-provider: --name"},
		"no clone":    {[]string{"--module", "example.com/me/vk-foo", "--name", "foo", "--replace", dir, dir + "/a"}, "new-provider: --replace"},
	} {
		root := &cobra.Command{Use: "vk", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(Command("development"))
		root.SetArgs(append([]string{"new-provider"}, tt.args...))
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v, %v", entries, err)
	}
}

func TestHelpIsAboutProviders(t *testing.T) {
	root := &cobra.Command{Use: "vk"}
	root.PersistentFlags().String("kubeconfig", "", "of nodes")
	root.AddCommand(Command("development"))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"new-provider", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if help := out.String(); strings.Contains(help, "kubeconfig") || !strings.Contains(help, "--module") || !strings.Contains(help, "docs/providers/writing.md") {
		t.Errorf("got %s", help)
	}
}
