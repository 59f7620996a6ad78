// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
)

// execSlack is the extra time after the timeout for the runtime to end a command, unless Config has another.
const execSlack = 2 * time.Second

func (p *Prober) askExec(ctx context.Context, action *corev1.ExecAction, t Target, timeout time.Duration) (outcome, string, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout+p.cfg.ExecSlack)
	defer cancel()
	cmd := expandCommand(action.Command, t.Container.Env)
	stdout, stderr, err := p.cfg.Exec(bounded, t.ID, cmd, timeout)
	output := joinOutputs(stdout, stderr)
	var exit exec.ExitError
	switch {
	case err == nil:
		return success, output, nil
	case errors.As(err, &exit):
		if exit.ExitStatus() == 0 {
			return success, output, nil
		}
		return failure, output, nil
	case outOfTime(err) || bounded.Err() != nil && ctx.Err() == nil:
		return failure, fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(cmd, " "), timeout), nil
	default:
		return unknown, "", err
	}
}

// outOfTime recognizes the two errors of runtimes for a command that exceeded its timeout.
func outOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}

// joinOutputs returns the part of the outputs that is used in results.
func joinOutputs(stdout, stderr []byte) string {
	stdout = stdout[:min(len(stdout), readLimit)]
	stderr = stderr[:min(len(stderr), readLimit-len(stdout))]
	return string(stdout) + string(stderr)
}

// expandCommand replaces $(NAME) by values that are literally in the spec. Probes do not get values from other sources.
func expandCommand(command []string, env []corev1.EnvVar) []string {
	out := make([]string, len(command))
	for i, word := range command {
		out[i] = podenv.Expand(word, func(name string) (string, bool) { return staticValue(env, name) })
	}
	return out
}

// staticValue returns the value of the last variable with that name.
func staticValue(env []corev1.EnvVar, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if env[i].Name == name {
			return env[i].Value, true
		}
	}
	return "", false
}
