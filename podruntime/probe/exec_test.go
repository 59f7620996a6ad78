// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/exec"
)

func TestExecOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"well":              {nil, "success: out err"},
		"exit code":         {exec.CodeExitError{Err: errors.New("x"), Code: 3}, "failure: out err"},
		"wrapped":           {fmt.Errorf("exec: %w", exec.CodeExitError{Err: errors.New("x"), Code: 3}), "failure: out err"},
		"exit code 0":       {exec.CodeExitError{Err: errors.New("x")}, "success: out err"},
		"runtime":           {errRuntime, "unknown: the runtime is away"},
		"time is up":        {fmt.Errorf("exec: %w", context.DeadlineExceeded), `failure: command timed out: "check me" timed out after 1s`},
		"time is up (wire)": {status.Error(codes.DeadlineExceeded, "x"), `failure: command timed out: "check me" timed out after 1s`},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(Config{Exec: func(context.Context, string, []string, time.Duration) ([]byte, []byte, error) {
				return []byte("out "), []byte("err"), tc.err
			}})
			o, output, err := p.askExec(t.Context(), &corev1.ExecAction{Command: []string{"check", "me"}}, running("a"), time.Second)
			if err != nil {
				output = err.Error()
			}
			if got := fmt.Sprintf("%s: %s", o, output); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestExecTimeoutIsEnforced: the prober does not wait for a runtime that does not end a command in time.
func TestExecTimeoutIsEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Exec: func(ctx context.Context, _ string, _ []string, timeout time.Duration) ([]byte, []byte, error) {
			if timeout != 3*time.Second {
				t.Errorf("timeout %s, want that of the probe", timeout)
			}
			<-ctx.Done()
			return nil, nil, errors.New("gave up")
		}})
		begin := time.Now()
		o, _, err := p.askExec(t.Context(), &corev1.ExecAction{}, running("a"), 3*time.Second)
		if took := time.Since(begin); o != failure || err != nil || took > 6*time.Second {
			t.Errorf("got %s, %v after %s", o, err, took)
		}
	})
}

func TestExecExpandsStaticVariablesOnly(t *testing.T) {
	env := []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}, {Name: "S", ValueFrom: &corev1.EnvVarSource{}}}
	got := expandCommand([]string{"x$(A)", "$(S)", "$(NONE)", "$$(A)"}, env)
	if want := []string{"x2", "", "$(NONE)", "$(A)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsSaidIsShortAndText(t *testing.T) {
	if got := joinOutputs(make([]byte, 9<<10), make([]byte, 9<<10)); len(got) != 10<<10 {
		t.Errorf("%d bytes of output looked at", len(got))
	}
	if got := shortOutput(strings.Repeat("é", 9000)); len(got) > 1024 {
		t.Errorf("%d bytes shown", len(got))
	}
	if got := shortOutput("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("shown %q", got)
	}
}
