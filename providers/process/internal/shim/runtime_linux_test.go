// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// TestRuntimeThatHangsIsKilled checks that a hanging command is killed with all its children.
func TestRuntimeThatHangsIsKilled(t *testing.T) {
	children := newChildren()
	t.Cleanup(children.stop)
	held, hold, err := os.Pipe() // open for as long as a process of the call runs
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	call := oci.Call{Argv: []string{"/bin/sh", "-c", "sleep 1000 & wait"}, Dir: t.TempDir()}
	err = callWithin(children, 50*time.Millisecond, call, []uintptr{0, hold.Fd(), hold.Fd()})
	_ = hold.Close()
	if err == nil || !strings.Contains(err.Error(), "sh: it did not end within 50ms and was killed") {
		t.Fatalf("a call that hangs: %v", err)
	}
	if err := held.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := held.Read(make([]byte, 1)); n != 0 || os.IsTimeout(err) {
		t.Fatalf("what the call had started is still there: %d bytes, %v", n, err)
	}
}

// TestRuntimeThatFailsIsToldApart checks the errors of commands that fail by themselves.
func TestRuntimeThatFailsIsToldApart(t *testing.T) {
	children := newChildren()
	t.Cleanup(children.stop)
	for script, want := range map[string]string{"exit 0": "", "exit 3": "sh: it ended with code 3", "kill -9 $$": "sh: it ended with code 137"} {
		err := callWithin(children, time.Minute, oci.Call{Argv: []string{"/bin/sh", "-c", script}, Dir: t.TempDir()}, []uintptr{0, 1, 2})
		if got := text(err); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
