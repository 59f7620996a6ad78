// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

// TestShellBegins checks that the timeout of a probe counts from the begin of its command in a shell, and that the
// output of the command is kept.
func TestShellBegins(t *testing.T) {
	s := &probeSession{timeout: time.Hour, limit: time.AfterFunc(time.Hour, func() {})}
	defer s.stop()
	e := Shell(s, shellexec.Options{Command: []string{"true"}})
	mark := e.Command()[4]
	for _, c := range []struct {
		output string
		begun  bool
	}{{"a word of the image\n", false}, {"\x1e" + mark + " begun\n", true}} {
		if _, err := e.Write([]byte(c.output)); err != nil || s.begun != c.begun {
			t.Errorf("%q: the command has begun: %t (%v), want %t", c.output, s.begun, err, c.begun)
		}
	}
	if _, err := e.Write([]byte("well\x1e" + mark + " 0\n")); err != nil {
		t.Fatal(err)
	}
	if out, _ := s.output(); string(out) != "well" {
		t.Errorf("the output is %q", out)
	}
}
