// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	utilexec "k8s.io/utils/exec"
)

// TestStreamEndsWithTheResult: the node gets the output and the exit code of a command, and detects an end without a result.
func TestStreamEndsWithTheResult(t *testing.T) {
	for name, result := range map[string]*Result{"failed": {Exit: 3, Error: "exit 3"}, "refused": {Error: "no such container"}, "succeeded": {}, "cut": nil} {
		var answer, out, complaint, asked bytes.Buffer
		f := NewFrames(&answer)
		err := errors.Join(f.Send(FrameOutput, []byte("out")), f.Send(FrameError, []byte("err")))
		if result != nil {
			err = errors.Join(err, f.SendJSON(FrameResult, result))
		}
		if err != nil {
			t.Fatal(err)
		}
		got := Stream(t.Context(), &asked, &answer, Request{Op: OpExec, Container: "c"}, Ends{Out: &out, Err: &complaint})
		if out.String() != "out" || complaint.String() != "err" {
			t.Errorf("%s: output %q, errors %q", name, out.String(), complaint.String())
		}
		if _, first, err := ReadFrame(&asked); err != nil || !strings.Contains(string(first), `"Op":"exec"`) {
			t.Errorf("%s: the pod was asked %q, %v", name, first, err)
		}
		var exited utilexec.ExitError
		switch name {
		case "failed":
			if !errors.As(got, &exited) || exited.ExitStatus() != 3 {
				t.Errorf("%s: %v", name, got)
			}
		case "refused":
			if got == nil || errors.As(got, &exited) || got.Error() != "no such container" {
				t.Errorf("%s: %v", name, got)
			}
		case "succeeded":
			if got != nil {
				t.Errorf("%s: %v", name, got)
			}
		case "cut":
			if !errors.Is(got, ErrNoResult) || errors.Is(got, io.EOF) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}
