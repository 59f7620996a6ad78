// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// logger is the part of nodeutil.Provider for the checks of logs.
type logger interface {
	GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error)
}

func (c *C) requireLogs() logger {
	l, ok := c.openProvider().provider.(logger)
	if !ok {
		c.Skipf("the provider has no GetContainerLogs")
	}
	return l
}

// readLog reads the log of a container.
func (c *C) readLog(pod *corev1.Pod, container string, opts api.ContainerLogOpts) string {
	r, err := c.requireLogs().GetContainerLogs(c.ctx, pod.Namespace, pod.Name, container, opts)
	if err != nil {
		c.Fatalf("GetContainerLogs of %s with %+v: %v", pod.Name, opts, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		c.Fatalf("read the log of %s with %+v: %v", pod.Name, opts, err)
	}
	return string(data)
}

// podWithLog returns a pod after it has written a log, and the lines of the log.
func (c *C) podWithLog(name string) (*corev1.Pod, []string) {
	c.requireLogs()
	printed := []string{"one", "two", "three", "four", "five"}
	pod := c.newPod(name, c.printingProgram(program.Program{Print: printed, Stay: 5 * c.h.Tick}))
	if !c.h.OwnLog {
		pod = c.newPod(name, c.printingProgram(program.Program{Print: printed}))
	}
	lines := c.printedLines(pod, func(lines []string) bool { return len(lines) >= len(printed) })
	if !c.h.OwnLog && !slices.Equal(lines, printed) {
		c.Fatalf("the log is %q, want %q", lines, printed)
	}
	if len(lines) < 5 {
		c.Fatalf("the log has %d lines, want five at least: %q", len(lines), lines)
	}
	return pod, lines
}

func joinLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// wantLog compares a log with the expected log.
func (c *C) wantLog(pod *corev1.Pod, opts api.ContainerLogOpts, want string) {
	if got := c.readLog(pod, "main", opts); got != want {
		c.Errorf("the log with %+v is %q, want %q", opts, got, want)
	}
}

var logs = []Check{
	{
		Name: "logs/whole", Why: "kubectl logs is how users find out what happened, also after the end",
		Run: func(c *C) {
			pod, lines := c.podWithLog("whole")
			c.wantLog(pod, api.ContainerLogOpts{}, joinLines(lines))
		},
	},
	{
		Name: "logs/stderr", Why: "errors are in the log too",
		Run: func(c *C) {
			c.needsPrint()
			c.requireLogs()
			pod := c.newPod("stderr", c.printingProgram(program.Program{Print: []string{"out"}, Stderr: []string{"err"}}))
			got := c.printedLines(pod, func(lines []string) bool { return len(lines) == 2 })
			slices.Sort(got)
			if !slices.Equal(got, []string{"err", "out"}) {
				c.Errorf("the log is %q, want out and err", got)
			}
		},
	},
	{
		Name: "logs/tail", Why: "a log of gigabytes is not sent for its last lines",
		Run: func(c *C) {
			pod, lines := c.podWithLog("tail")
			c.wantLog(pod, api.ContainerLogOpts{Tail: 2}, joinLines(lines[len(lines)-2:]))
			c.wantLog(pod, api.ContainerLogOpts{Tail: 1000}, joinLines(lines))
		},
	},
	{
		Name: "logs/limit", Why: "a caller that asks for so many bytes has no room for more",
		Run: func(c *C) {
			pod, lines := c.podWithLog("limit")
			c.wantLog(pod, api.ContainerLogOpts{LimitBytes: 6}, joinLines(lines)[:6])
		},
	},
	{
		Name: "logs/timestamps", Why: "tools that collect logs order lines by their times",
		Run: func(c *C) {
			begin := time.Now()
			pod, lines := c.podWithLog("timestamps")
			got := strings.Split(strings.TrimSuffix(c.readLog(pod, "main", api.ContainerLogOpts{Timestamps: true}), "\n"), "\n")
			if len(got) != len(lines) {
				c.Fatalf("with timestamps the log is %q, want %d lines", got, len(lines))
			}
			for i, line := range got {
				stamp, text, _ := strings.Cut(line, " ")
				at, err := time.Parse(time.RFC3339Nano, stamp)
				if err != nil || text != lines[i] {
					c.Errorf("line %d is %q, want an RFC 3339 time, a blank and %q", i, line, lines[i])
				} else if at.Before(begin.Add(-5*time.Second)) || at.After(time.Now().Add(5*time.Second)) {
					c.Errorf("line %d is of %s, want a time between %s and now", i, at, begin)
				}
			}
		},
	},
	{
		Name: "logs/since", Why: "users ask for what happened since an incident",
		Run: func(c *C) {
			pod, lines := c.podWithLog("since")
			c.wantLog(pod, api.ContainerLogOpts{SinceTime: time.Now().Add(time.Hour)}, "")
			c.wantLog(pod, api.ContainerLogOpts{SinceTime: time.Now().Add(-time.Hour)}, joinLines(lines))
			c.wantLog(pod, api.ContainerLogOpts{SinceSeconds: 3600}, joinLines(lines))
		},
	},
	{
		Name: "logs/follow-ends", Why: "kubectl logs -f returns when the container has ended; else scripts hang",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			l := c.requireLogs()
			pod := c.newPod("follow", program.Program{Print: []string{"one"}, Stay: 3 * c.h.Tick})
			c.startPod(pod)
			ctx, cancel := context.WithTimeout(c.ctx, c.h.Patience)
			defer cancel()
			r, err := l.GetContainerLogs(ctx, c.ns, pod.Name, "main", api.ContainerLogOpts{Follow: true})
			if err != nil {
				c.Fatalf("GetContainerLogs with Follow: %v", err)
			}
			defer r.Close()
			if _, err := io.Copy(io.Discard, r); err != nil || ctx.Err() != nil {
				c.Errorf("the container ended, and its log goes on: %v", errors.Join(err, ctx.Err()))
			}
		},
	},
	{
		Name: "logs/follow", Why: "lines show while they are written",
		Run: func(c *C) {
			l := c.requireLogs()
			pod := c.newPod("live", program.Program{Tick: c.h.Tick, Stay: program.Forever})
			c.startPod(pod)
			ctx, cancel := context.WithTimeout(c.ctx, c.h.Patience)
			defer cancel()
			r, err := l.GetContainerLogs(ctx, c.ns, pod.Name, "main", api.ContainerLogOpts{Follow: true})
			if err != nil {
				c.Fatalf("GetContainerLogs with Follow: %v", err)
			}
			defer r.Close()
			lines := bufio.NewReader(r)
			for n := 1; n <= 3; n++ {
				line, err := lines.ReadString('\n')
				if err != nil {
					c.Fatalf("line %d of a log that goes on: got %q, %v", n, line, err)
				}
				if want := fmt.Sprintf("tick %d\n", n); !c.h.OwnLog && line != want {
					c.Errorf("line %d is %q, want %q", n, line, want)
				}
			}
		},
	},
	{
		Name: "logs/follow-cancel", Why: "a reader that went away must not leave anything behind",
		Run: func(c *C) {
			l := c.requireLogs()
			pod := c.newPod("cancel", program.Program{Print: []string{"one"}, Stay: program.Forever})
			c.startPod(pod)
			ctx, cancel := context.WithCancel(c.ctx)
			r, err := l.GetContainerLogs(ctx, c.ns, pod.Name, "main", api.ContainerLogOpts{Follow: true})
			if err != nil {
				cancel()
				c.Fatalf("GetContainerLogs with Follow: %v", err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = io.Copy(io.Discard, r)
			}()
			cancel()
			if !c.endsInTime(ended) {
				c.Errorf("the context ended, and the log is still read")
			}
			r.Close()
		},
	},
	{
		Name: "logs/previous", Why: "the log of the run that crashed tells why",
		Run: func(c *C) {
			c.requireLogs()
			pod := c.newPod("previous", program.Program{Print: []string{"crash"}, Exit: 1, Stay: c.h.Tick})
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			c.untilRestarted(pod)
			if got := c.readLog(pod, "main", api.ContainerLogOpts{Previous: true}); !c.h.OwnLog && got != "crash\n" || got == "" {
				c.Errorf("the log of the previous run is %q, want %q", got, "crash\n")
			}
		},
	},
	{
		Name: "logs/no-previous", Why: "a log of another run than the one that was asked for misleads",
		Run: func(c *C) {
			l := c.requireLogs()
			pod, _ := c.podWithLog("no-previous")
			r, err := l.GetContainerLogs(c.ctx, c.ns, pod.Name, "main", api.ContainerLogOpts{Previous: true})
			if err == nil {
				defer r.Close()
				if data, _ := io.ReadAll(r); len(data) > 0 {
					c.Errorf("the container ran once, and the log of its previous run is %q", data)
				}
			}
		},
	},
	{
		Name: "logs/absent", Why: "404 says that there is nothing; 500 makes tools try again",
		Run: func(c *C) {
			l := c.requireLogs()
			pod := c.newPod("absent", stayingProgram())
			c.startPod(pod)
			for _, name := range [][2]string{{"other", "main"}, {pod.Name, "other"}} {
				r, err := l.GetContainerLogs(c.ctx, c.ns, name[0], name[1], api.ContainerLogOpts{})
				if err == nil {
					_, err = io.ReadAll(r)
					r.Close()
				}
				if !errdefs.IsNotFound(err) {
					c.Errorf("the log of container %s of pod %s, which is not there: got %v, want an error of the kind not-found", name[1], name[0], err)
				}
			}
		},
	},
}

// endsInTime reports whether something ends within the patience of the harness.
func (c *C) endsInTime(ended <-chan struct{}) bool {
	timer := time.NewTimer(c.h.Patience)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
