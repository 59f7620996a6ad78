// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// execer and attacher are the parts of nodeutil.Provider for the checks of streams.
type execer interface {
	RunInContainer(ctx context.Context, namespace, podName, containerName string, cmd []string, attach api.AttachIO) error
}

type attacher interface {
	AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error
}

// tryExec runs a program in a container.
func (c *C) tryExec(ctx context.Context, pod *corev1.Pod, container string, p program.Program, caller *terminalIO) (out, errs string, err error) {
	e, ok := c.openProvider().provider.(execer)
	if !ok {
		c.Skipf("the provider has no RunInContainer")
	}
	if caller == nil {
		caller = plainIO(nil)
	}
	err = e.RunInContainer(ctx, pod.Namespace, pod.Name, container, c.execCommand(p), caller)
	if caller.errors != nil {
		errs = caller.errors.String()
	}
	return caller.out.String(), errs, err
}

// runExec runs a program in a container. The program must succeed.
func (c *C) runExec(pod *corev1.Pod, container string, p program.Program) string {
	out, errs, err := c.tryExec(c.ctx, pod, container, p, nil)
	if err != nil {
		c.Fatalf("exec in %s: %v: %s%s", pod.Name, err, out, errs)
	}
	return out
}

// inPod runs a pod for execs.
func (c *C) inPod(name string) *corev1.Pod {
	if _, ok := c.openProvider().provider.(execer); !ok {
		c.Skipf("the provider has no RunInContainer")
	}
	c.execCommand(program.Program{})
	pod := c.newPod(name, stayingProgram())
	c.startPod(pod)
	return pod
}

var execs = []Check{
	{
		Name: "exec/output", Why: "kubectl exec shows what the command prints, each stream by itself",
		Run: func(c *C) {
			out, errs, err := c.tryExec(c.ctx, c.inPod("output"), "main", program.Program{Print: []string{"to out"}, Stderr: []string{"to err"}}, nil)
			if err != nil || out != "to out\n" || errs != "to err\n" {
				c.Errorf("exec: got %q on stdout, %q on stderr and %v", out, errs, err)
			}
		},
	},
	{
		Name: "exec/exit-code", Why: "scripts and probes decide by the exit code; one that is swallowed turns failure into success",
		Run: func(c *C) {
			_, _, err := c.tryExec(c.ctx, c.inPod("exit-code"), "main", program.Program{Exit: 3}, nil)
			var exit utilexec.ExitError
			if !errors.As(err, &exit) || exit.ExitStatus() != 3 {
				c.Errorf("a command that ends with 3: got %v, want an error with that exit status (k8s.io/utils/exec.ExitError)", err)
			}
		},
	},
	{
		Name: "exec/stdin", Why: "kubectl cp sends files by the standard input, and waits for the end of the command",
		Run: func(c *C) {
			text := strings.Repeat("all of this comes back\n", 5000)
			out, _, err := c.tryExec(c.ctx, c.inPod("stdin"), "main", program.Program{Echo: true}, plainIO(strings.NewReader(text)))
			if err != nil || out != text {
				c.Errorf("exec with %d bytes of input: got %d bytes and %v, want all of them", len(text), len(out), err)
			}
		},
	},
	{
		Name: "exec/terminal", Why: "a shell needs a terminal, and programs its size",
		Run: func(c *C) {
			pod := c.inPod("terminal")
			in, typed := io.Pipe()
			defer typed.Close()
			caller := ttyIO(in)
			ended := make(chan error, 1)
			command := c.execCommand(program.Program{Size: true})
			go func() {
				ended <- c.openProvider().provider.(execer).RunInContainer(c.ctx, c.ns, pod.Name, "main", command, caller)
			}()
			c.untilShown(caller, "size 24 80", ended)
			caller.sizes <- api.TermSize{Height: 50, Width: 132}
			c.untilShown(caller, "size 50 132", ended)
			close(caller.sizes)
			if _, err := typed.Write([]byte{4}); err != nil { // Ctrl-D
				c.Logf("type: %v", err)
			}
			typed.Close()
			c.awaitReturn("a command whose input ended", ended)
		},
	},
	{
		Name: "exec/cancel", Why: "a caller that went away must not leave its command's session behind",
		Run: func(c *C) {
			pod := c.inPod("exec-cancel")
			ctx, cancel := context.WithCancel(c.ctx)
			ended := make(chan error, 1)
			command, caller := c.execCommand(program.Program{Print: []string{"begun"}, Stay: program.Forever}), plainIO(nil)
			go func() {
				ended <- c.openProvider().provider.(execer).RunInContainer(ctx, c.ns, pod.Name, "main", command, caller)
			}()
			c.untilShown(caller, "begun", ended)
			cancel()
			c.awaitReturn("a command whose caller went away", ended)
		},
	},
	{
		Name: "exec/pod-ends", Why: "a session ends with its pod",
		Run: func(c *C) {
			pod := c.inPod("exec-end")
			ended := make(chan error, 1)
			command, caller := c.execCommand(program.Program{Print: []string{"begun"}, Stay: program.Forever, Deaf: true}), plainIO(nil)
			go func() {
				ended <- c.openProvider().provider.(execer).RunInContainer(c.ctx, c.ns, pod.Name, "main", command, caller)
			}()
			c.untilShown(caller, "begun", ended)
			c.removePod(pod, 0)
			c.awaitReturn("a command whose pod was deleted", ended)
		},
	},
	{
		Name: "exec/absent", Why: "a command in a container that is not there did not run, and the caller must see it",
		Run: func(c *C) {
			pod := c.inPod("exec-absent")
			e := c.openProvider().provider.(execer)
			for _, name := range [][2]string{{"other", "main"}, {pod.Name, "other"}} {
				if err := e.RunInContainer(c.ctx, c.ns, name[0], name[1], c.execCommand(program.Program{}), plainIO(nil)); !errdefs.IsNotFound(err) {
					c.Errorf("exec in container %s of pod %s, which is not there: got %v, want an error of the kind not-found", name[1], name[0], err)
				}
			}
		},
	},
}

// untilShown waits until a caller sees a text.
func (c *C) untilShown(caller *terminalIO, want string, ended chan error) {
	c.awaitCondition(fmt.Sprintf("the caller to see %q", want), func() (bool, string) {
		select {
		case err := <-ended:
			ended <- err
			if shown := caller.out.String(); !strings.Contains(shown, want) {
				c.Fatalf("the session ended with %v and has shown %q, want %q", err, shown, want)
			}
		default:
		}
		shown := caller.out.String()
		return strings.Contains(shown, want), fmt.Sprintf("it sees %q", shown)
	})
}

// awaitReturn waits for the end of a session.
func (c *C) awaitReturn(what string, ended <-chan error) {
	timer := time.NewTimer(c.h.Patience)
	defer timer.Stop()
	select {
	case err := <-ended:
		c.Logf("%s ended with: %v", what, err)
	case <-timer.C:
		c.Fatalf("%s goes on", what)
	}
}
