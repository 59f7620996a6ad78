// SPDX-License-Identifier: Apache-2.0

package qemu

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// bootTime is how long a machine may take on a busy host without hardware for it.
const bootTime = 120 * time.Second

// imageDir is where `make cell-image` leaves the image.
const imageDir = "../../../../bin/cell"

// lab is a driver with an authority.
type lab struct {
	*testing.T
	driver    *Driver
	authority *cell.Authority
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("no qemu-system-x86_64: install Debian's package qemu-system-x86")
	}
	image, err := filepath.Abs(imageDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(image, "initrd")); err != nil {
		t.Skip("no image of a cell: make it with `make cell-image`")
	}
	d, err := New(Config{Dir: t.TempDir(), Image: image})
	if err != nil {
		t.Fatal(err)
	}
	a, err := cell.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t, d, a}
	t.Cleanup(func() {
		all, err := d.List(context.Background(), nil)
		for _, m := range all {
			if t.Failed() {
				console, _ := d.Console(context.Background(), m.ID)
				t.Logf("the console of %s: %s", m.ID, console)
			}
			err = errors.Join(err, d.Stop(context.Background(), m.ID))
		}
		if err != nil {
			t.Error(err)
		}
	})
	return l
}

// spec is a machine of 384 MiB.
func (l *lab) spec(token string, orphanAfter time.Duration) machine.Spec {
	return machine.Spec{
		Token: token, Type: machine.Type{Name: "small", MilliCPU: 1000, Memory: 384 << 20}, Tags: map[string]string{"cluster": l.Name()},
		UserData: l.authority.UserData(token, "", orphanAfter, 0).Marshal(),
	}
}

// joined starts a machine and joins it. Its agent is asked again until it answers.
func (l *lab) joined(token string) (machine.Machine, *cell.Client) {
	l.Helper()
	m, err := l.driver.Start(l.Context(), l.spec(token, time.Hour))
	if err != nil {
		l.Fatal(err)
	}
	c := l.authority.Client(token, m.Address)
	l.Cleanup(c.Close)
	l.join(c)
	return m, c
}

func (l *lab) join(c *cell.Client) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), bootTime)
	defer cancel()
	for {
		err := c.Join(ctx, "", func(context.Context, string) error { return nil })
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			l.Fatalf("the machine does not answer: %v", err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// run gives a machine a pod whose container runs a shell, and returns the pod's states.
func (l *lab) run(c *cell.Client, script string) <-chan cell.State {
	l.Helper()
	main := corev1.Container{Name: "main", Image: "machine", Command: []string{"/bin/sh", "-c", script}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: types.UID("u-" + l.Name())}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{main},
	}}
	if err := c.Give(l.Context(), podjob.Bundle{Pod: pod, Node: &corev1.Node{}, Containers: map[string]*corev1.Container{"main": &main}}); err != nil {
		l.Fatal(err)
	}
	states := make(chan cell.State, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Watch(ctx, func(s cell.State) { states <- s }) }()
	l.Cleanup(func() {
		cancel()
		<-done // the machine may have ended first
	})
	return states
}

func (l *lab) await(states <-chan cell.State, want func(podjob.Status) bool) podjob.Status {
	l.Helper()
	var last cell.State
	late := time.After(bootTime)
	for {
		select {
		case last = <-states:
			if last.Status != nil && want(*last.Status) {
				return *last.Status
			}
		case <-late:
			l.Fatalf("the pod does not get there: %+v", last.Status)
		}
	}
}

func running(s podjob.Status) bool { return s.Pod.Phase == corev1.PodRunning }

func ended(s podjob.Status) bool { return s.Ended }

func (l *lab) log(c *cell.Client, opts api.ContainerLogOpts) string {
	l.Helper()
	r, err := c.Logs(l.Context(), "main", opts)
	if err != nil {
		l.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		l.Error(err)
	}
	return string(text)
}

func (l *lab) exec(c *cell.Client, command ...string) string {
	l.Helper()
	var out, errs bytes.Buffer
	if err := c.Stream(l.Context(), podjob.Request{Op: podjob.OpExec, Container: "main", Command: command, Stdout: true, Stderr: true}, podjob.Ends{Out: &out, Err: &errs}); err != nil {
		l.Errorf("%q: %v: %s", command, err, &errs)
	}
	return out.String()
}

// TestPodRunsInAMachine: its log, commands in it, a port of it, what it uses, and its end; and a node that has started anew finds the machine.
func TestPodRunsInAMachine(t *testing.T) {
	l := newLab(t)
	m, c := l.joined("t1")
	states := l.run(c, "echo hello; mkdir /tmp/w; echo page > /tmp/w/page; httpd -p 8080 -h /tmp/w; trap 'echo stopped; exit 3' TERM; while true; do sleep 1; done")
	l.await(states, running)
	if got := l.exec(c, "uname", "-r"); !strings.Contains(got, "cloud") {
		t.Errorf("the kernel is %q", got)
	}
	if got := l.log(c, api.ContainerLogOpts{}); got != "hello\n" {
		t.Errorf("the log is %q", got)
	}
	var page bytes.Buffer
	if err := c.Stream(t.Context(), podjob.Request{Op: podjob.OpPort, Port: 8080}, podjob.Ends{In: strings.NewReader("GET /page HTTP/1.0\r\n\r\n"), Out: &page}); err != nil || !strings.HasSuffix(page.String(), "page\n") {
		t.Errorf("the port answers %q, %v", &page, err)
	}
	if s, err := c.Stats(t.Context()); err != nil || s.CPU == nil || *s.CPU.UsageCoreNanoSeconds == 0 || *s.Memory.WorkingSetBytes == 0 {
		t.Errorf("it uses %+v, %v", s, err)
	}
	again, err := New(l.driver.config)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := again.List(t.Context(), map[string]string{"cluster": t.Name()}); err != nil || len(all) != 1 || all[0].ID != m.ID || all[0].State != machine.Running {
		t.Errorf("a driver that starts anew sees %+v, %v", all, err)
	}
	if same, err := again.Start(t.Context(), l.spec("t1", time.Hour)); err != nil || same.ID != m.ID || same.Address != m.Address {
		t.Errorf("the second start with the token is %+v, %v", same, err)
	}
	if err := c.Stop(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	s := l.await(states, ended)
	if code := s.Pod.ContainerStatuses; len(code) != 1 || code[0].State.Terminated == nil || code[0].State.Terminated.ExitCode != 3 {
		t.Errorf("the pod has ended with %+v", s.Pod)
	}
	if got := l.log(c, api.ContainerLogOpts{Tail: 1}); got != "stopped\n" {
		t.Errorf("the end of the log is %q", got)
	}
}
