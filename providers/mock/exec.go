// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// RunInContainer runs a command in a container, with a small shell and no file system. An unknown command ends with exit code 127. A command whose container ends returns 137.
func (p *provider) RunInContainer(ctx context.Context, namespace, podName, containerName string, cmd []string, attach api.AttachIO) error {
	err := p.runSession(ctx, namespace, podName, containerName, attach, func(sh *shell) error { return sh.run(cmd) })
	if errors.Is(err, errRunEnded) {
		return exec.CodeExitError{Err: fmt.Errorf("the container ended: %w", err), Code: killed}
	}
	return err
}

// openShell returns a shell in a running container, with its pod and the current run of the pod.
func (p *provider) openShell(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) (sh *shell, s *simulated, run int32, err error) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, container, err := p.findContainer(namespace, podName, containerName, now)
	if err != nil {
		return nil, nil, 0, err
	}
	m := s.life.momentAt(now)
	if m.stage != running {
		return nil, nil, 0, errdefs.InvalidInputf("container %q of pod %s/%s is not running", containerName, namespace, podName)
	}
	hostname := s.pod.Spec.Hostname
	if hostname == "" {
		hostname = s.pod.Name
	}
	sh = &shell{
		ctx: ctx, env: shellEnvironment(container, hostname), hostname: hostname,
		stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, tty: attach.TTY(),
	}
	if in := attach.Stdin(); in != nil {
		sh.stdin = input{ctx, in}
	}
	if out := attach.Stdout(); out != nil {
		sh.stdout, sh.stderr = out, out
		if sh.tty {
			sh.stdout, sh.stderr = terminal{out}, terminal{out}
		}
	}
	if out := attach.Stderr(); out != nil {
		sh.stderr = out
	} else if !sh.tty {
		sh.stderr = io.Discard
	}
	return sh, s, m.run, nil
}

// shellEnvironment returns the output of env: the variables of every container, and the variables of the spec as
// resolved for the provider.
func shellEnvironment(container *corev1.Container, hostname string) []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOSTNAME=" + hostname,
		"HOME=/root",
	}
	for _, v := range container.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}
