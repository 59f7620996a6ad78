// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// console is the client of an exec.
type console struct {
	in       io.Reader
	out, err bytes.Buffer
	tty      bool
	sizes    chan api.TermSize
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

func (c *console) Stdin() io.Reader {
	if c.in == nil {
		return nil
	}
	return c.in
}
func (c *console) Stdout() io.WriteCloser { return closer{&c.out} }
func (c *console) Stderr() io.WriteCloser {
	if c.tty {
		return nil
	}
	return closer{&c.err}
}
func (c *console) TTY() bool                   { return c.tty }
func (c *console) Resize() <-chan api.TermSize { return c.sizes }

// said formats an answer as text, so that two answers can be compared.
func said(value any, err error) string {
	var exit utilexec.ExitError
	code := -1
	if errors.As(err, &exit) {
		code = exit.ExitStatus()
	}
	after, _ := errdefs.RetryAfterOf(err)
	return fmt.Sprintf("%v; error %v (not-found %v, invalid-input %v, deadline %v, exit %d, after %v)", value, err,
		errdefs.IsNotFound(err), errdefs.IsInvalidInput(err), errors.Is(err, context.DeadlineExceeded), code, after)
}

func names(pods []*corev1.Pod) (all []string) {
	for _, p := range pods {
		all = append(all, p.Namespace+"/"+p.Name+" "+string(p.UID))
	}
	slices.Sort(all)
	return all
}

// calls are the requests of a node to a provider, in order.
var calls = []struct {
	name string
	do   func(context.Context, nodeutil.Provider) string
}{
	{"get what is not there", func(ctx context.Context, p nodeutil.Provider) string { return said(p.GetPod(ctx, "default", "web")) }},
	{"status of what is not there", func(ctx context.Context, p nodeutil.Provider) string {
		return said(p.GetPodStatus(ctx, "default", "web"))
	}},
	{"empty list", func(ctx context.Context, p nodeutil.Provider) string {
		pods, err := p.GetPods(ctx)
		return said(len(pods), err)
	}},
	{"create", func(ctx context.Context, p nodeutil.Provider) string {
		return said(nil, p.CreatePod(ctx, pod("web", "u1")))
	}},
	{"create again", func(ctx context.Context, p nodeutil.Provider) string {
		return said(nil, p.CreatePod(ctx, pod("web", "u1")))
	}},
	{"create another of the name", func(ctx context.Context, p nodeutil.Provider) string {
		return said(nil, p.CreatePod(ctx, pod("web", "u2")))
	}},
	{"get", func(ctx context.Context, p nodeutil.Provider) string {
		got, err := p.GetPod(ctx, "default", "web")
		return said(fmt.Sprint(got.Name, got.UID, got.Spec, got.Status.Phase, got.Status.PodIP, len(got.Status.ContainerStatuses)), err)
	}},
	{"list", func(ctx context.Context, p nodeutil.Provider) string {
		pods, err := p.GetPods(ctx)
		return said(names(pods), err)
	}},
	{"update", func(ctx context.Context, p nodeutil.Provider) string {
		changed := pod("web", "u1")
		changed.Labels = map[string]string{"a": "b"}
		return said(nil, p.UpdatePod(ctx, changed))
	}},
	{"get the label", func(ctx context.Context, p nodeutil.Provider) string {
		got, err := p.GetPod(ctx, "default", "web")
		return said(got.Labels, err)
	}},
	{"update another of the name", func(ctx context.Context, p nodeutil.Provider) string {
		return said(nil, p.UpdatePod(ctx, pod("web", "u2")))
	}},
	{"exec", func(ctx context.Context, p nodeutil.Provider) string {
		c := &console{in: strings.NewReader("typed\n")}
		err := p.RunInContainer(ctx, "default", "web", "c", []string{"cat"}, c)
		return said(c.out.String()+c.err.String(), err)
	}},
	{"exec with an exit code", func(ctx context.Context, p nodeutil.Provider) string {
		c := &console{}
		err := p.RunInContainer(ctx, "default", "web", "c", []string{"sh", "-c", "echo out; exit 42"}, c)
		return said(c.out.String(), err)
	}},
	{"exec in no container", func(ctx context.Context, p nodeutil.Provider) string {
		return said(nil, p.RunInContainer(ctx, "default", "web", "none", []string{"true"}, &console{}))
	}},
	{"logs", func(ctx context.Context, p nodeutil.Provider) string {
		l, err := p.GetContainerLogs(ctx, "default", "web", "c", api.ContainerLogOpts{Tail: 1})
		if err != nil {
			return said(nil, err)
		}
		defer l.Close()
		data, err := io.ReadAll(l)
		return said(len(data) > 0, err)
	}},
	{"logs of no container", func(ctx context.Context, p nodeutil.Provider) string {
		l, err := p.GetContainerLogs(ctx, "default", "web", "none", api.ContainerLogOpts{})
		return said(l == nil, err)
	}},
	{"port-forward", func(ctx context.Context, p nodeutil.Provider) string {
		ours, theirs := net.Pipe()
		defer ours.Close()
		done := make(chan error, 1)
		go func() {
			err := p.PortForward(ctx, "default", "web", 80, theirs)
			_ = theirs.Close()
			done <- err
		}()
		fmt.Fprint(ours, "GET / HTTP/1.0\r\n\r\n")
		data, _ := io.ReadAll(ours)
		return said(len(data) > 0, <-done)
	}},
	{"statistics", func(ctx context.Context, p nodeutil.Provider) string {
		s, err := p.GetStatsSummary(ctx)
		return said(fmt.Sprint(s.Node.NodeName, len(s.Pods)), err)
	}},
	{"metrics", func(ctx context.Context, p nodeutil.Provider) string {
		families, err := p.GetMetricsResource(ctx)
		var all []string
		for _, f := range families {
			all = append(all, fmt.Sprint(f.GetName(), f.GetType(), len(f.GetMetric())))
		}
		slices.Sort(all)
		return said(all, err)
	}},
	{"authority", func(_ context.Context, p nodeutil.Provider) string {
		return fmt.Sprint(p.(node.PodAuthority).AnswersForAllPods())
	}},
	{"too late", func(ctx context.Context, p nodeutil.Provider) string {
		ctx, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
		defer cancel()
		_, err := p.GetContainerLogs(ctx, "default", "web", "c", api.ContainerLogOpts{Follow: true})
		return fmt.Sprint(err == nil || errors.Is(err, context.DeadlineExceeded))
	}},
	{"delete another of the name", func(ctx context.Context, p nodeutil.Provider) string {
		return said(nil, p.DeletePod(ctx, pod("web", "u2")))
	}},
	{"delete", func(ctx context.Context, p nodeutil.Provider) string {
		end := pod("web", "u1")
		end.DeletionGracePeriodSeconds = new(int64)
		return said(nil, p.DeletePod(ctx, end))
	}},
	{"get after the end", func(ctx context.Context, p nodeutil.Provider) string { return said(p.GetPod(ctx, "default", "web")) }},
}

// TestSameAnswersOverTheWire compares a provider inside the program with the same provider served as a plugin.
func TestSameAnswersOverTheWire(t *testing.T) {
	direct, wired := newMock(), connectedTo(t, served(t, newMock()))
	eventually(t, "the plugin says whether its answers are complete", wired.(node.PodAuthority).AnswersForAllPods)
	for _, call := range calls {
		t.Run(call.name, func(t *testing.T) {
			want := call.do(t.Context(), direct)
			if got := call.do(t.Context(), wired); got != want {
				t.Errorf("over the wire: %s\nin the program: %s", got, want)
			}
		})
	}
}

// TestNodeOverTheWire checks that the plugin defines the node's resources and labels, and this process its
// addresses and ports.
func TestNodeOverTheWire(t *testing.T) {
	direct, wired := newMock(), connectedTo(t, served(t, newMock()))
	want, got := testNode().Node.DeepCopy(), testNode().Node.DeepCopy()
	direct.(cli.NodeConfigurer).ConfigureNode(t.Context(), want)
	wired.(cli.NodeConfigurer).ConfigureNode(t.Context(), got)
	if diff := cmp.Diff(want.Status.Capacity, got.Status.Capacity); diff != "" {
		t.Error(diff)
	}
	if len(got.Status.Conditions) != len(want.Status.Conditions) || !cmp.Equal(got.Labels, want.Labels) || got.Name != "n" {
		t.Errorf("node: %v", got)
	}
	if got.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 || got.Status.Addresses[0].Address != "192.0.2.1" {
		t.Errorf("node lacks how it is served: %v", got.Status)
	}
	for _, c := range got.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			t.Errorf("nobody else makes the node ready: %v", c)
		}
	}
	if !wired.(capability.Declarer).Capabilities().Has(capability.Privileged) {
		t.Error("a plugin that declares nothing gets every pod")
	}
}

// TestReportsOverTheWire checks that each change is reported, including the last report of a pod that is gone.
func TestReportsOverTheWire(t *testing.T) {
	p, err := begun(t, Config{Endpoint: served(t, newMock())})
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan *corev1.Pod, 100)
	p.notify = func(pod *corev1.Pod) { reports <- pod }
	wired := run(t, p)
	if err := wired.CreatePod(t.Context(), pod("web", "u1")); err != nil {
		t.Fatal(err)
	}
	await := func(what string, ok func(*corev1.Pod) bool) {
		t.Helper()
		for {
			select {
			case r := <-reports:
				if r.UID == "u1" && ok(r) {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatal("no report: " + what)
			}
		}
	}
	await("it runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	end := pod("web", "u1")
	end.DeletionGracePeriodSeconds = new(int64)
	if err := wired.DeletePod(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	await("it has ended", func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Terminated != nil
	})
}
