// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

// initialized matches a package that the Go runtime reports as initialized.
var initialized = regexp.MustCompile(`(?m)^init (\S+) @`)

// TestContainersBeginEarly: a process of a container does not wait for the initialization of all packages of this program, which takes longer than
// the rest of its work.
func TestContainersBeginEarly(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said := func(mode string) (text, complaint string) {
		specR, specW, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		readyR, readyW, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer readyR.Close()
		cmd := exec.CommandContext(t.Context(), self, enter.Marker, mode)
		cmd.Env, cmd.ExtraFiles = []string{"GODEBUG=inittrace=1"}, []*os.File{specR, readyW}
		_ = specW.Close() // without an entry, the process ends with an error
		out, _ := cmd.CombinedOutput()
		_, _ = specR.Close(), readyW.Close()
		words, err := io.ReadAll(readyR)
		if err != nil {
			t.Fatal(err)
		}
		return string(out), string(words)
	}
	text, complaint := said(enter.ModeEnter)
	if complaint != "EOF" {
		t.Errorf("without an entry it says %q", complaint)
	}
	if !strings.Contains(text, "init os @") {
		t.Fatalf("it does not say what it initialized: %q", text)
	}
	early := initialized.FindAllStringSubmatch(text, -1)
	for _, found := range early {
		path := found[1]
		if path == "k8s.io/apimachinery/pkg/util/rand" { // this package has so few imports that it may come first, and does with the race detector
			continue
		}
		if strings.HasPrefix(path, "k8s.io/") || strings.HasPrefix(path, "google.golang.org/protobuf/types/") {
			t.Errorf("%s is initialized before a container begins", path)
		}
	}
	text, _ = said("none")
	if all := initialized.FindAllString(text, -1); !strings.Contains(text, "init k8s.io/") || len(early) > len(all)/2 {
		t.Errorf("%d of %d packages are initialized before a container begins", len(early), len(all))
	}
}
