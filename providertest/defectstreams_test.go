// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// logger is a provider with another GetContainerLogs.
type logger struct {
	*inprocess.Provider
	read func(ctx context.Context, opts api.ContainerLogOpts, get getLog) (io.ReadCloser, error)
}

// getLog is GetContainerLogs of the good provider.
type getLog func(api.ContainerLogOpts) (io.ReadCloser, error)

func (l logger) GetContainerLogs(ctx context.Context, namespace, pod, container string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	return l.read(ctx, opts, func(o api.ContainerLogOpts) (io.ReadCloser, error) {
		return l.Provider.GetContainerLogs(ctx, namespace, pod, container, o)
	})
}

func reads(read func(ctx context.Context, opts api.ContainerLogOpts, get getLog) (io.ReadCloser, error)) func(context.Context, *inprocess.Provider) node.PodLifecycleHandler {
	return func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return logger{p, read} }
}

// ignores is a provider that ignores an option of logs.
func ignores(forget func(*api.ContainerLogOpts)) func(context.Context, *inprocess.Provider) node.PodLifecycleHandler {
	return reads(func(_ context.Context, opts api.ContainerLogOpts, get getLog) (io.ReadCloser, error) {
		forget(&opts)
		return get(opts)
	})
}

// lasting is a log that never reports its end.
type lasting struct {
	io.ReadCloser
	ctx context.Context
}

func (l lasting) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		<-l.ctx.Done()
		return n, l.ctx.Err()
	}
	return n, err
}

// executor is a provider with another RunInContainer.
type executor struct {
	*inprocess.Provider
	run func(ctx context.Context, attach api.AttachIO, exec func(context.Context, api.AttachIO) error) error
}

func (e executor) RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO) error {
	return e.run(ctx, attach, func(ctx context.Context, attach api.AttachIO) error {
		return e.Provider.RunInContainer(ctx, namespace, pod, container, cmd, attach)
	})
}

func executes(run func(ctx context.Context, attach api.AttachIO, exec func(context.Context, api.AttachIO) error) error) func(context.Context, *inprocess.Provider) node.PodLifecycleHandler {
	return func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return executor{p, run} }
}

// altered is a session with other streams.
type altered struct {
	api.AttachIO
	in     io.Reader
	errors io.WriteCloser
	sizes  chan api.TermSize
}

func (a altered) Stdin() io.Reader {
	if a.in != nil {
		return a.in
	}
	return a.AttachIO.Stdin()
}

func (a altered) Stderr() io.WriteCloser {
	if a.errors != nil {
		return a.errors
	}
	return a.AttachIO.Stderr()
}

func (a altered) Resize() <-chan api.TermSize {
	if a.sizes != nil {
		return a.sizes
	}
	return a.AttachIO.Resize()
}

// forwarder and measurer are providers with other requests replaced.
type forwarder struct{ *inprocess.Provider }

func (forwarder) PortForward(ctx context.Context, _, _ string, _ int32, _ io.ReadWriteCloser) error {
	<-ctx.Done()
	return ctx.Err()
}

type measurer struct{ *inprocess.Provider }

func (m measurer) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	s, err := m.Provider.GetStatsSummary(ctx)
	if s != nil {
		s.Pods = nil
	}
	return s, err
}

func streamDefects() []defect {
	return []defect{
		{name: "a log follow that never ends", caught: "logs/follow-ends", also: []string{}, wrap: reads(
			func(ctx context.Context, opts api.ContainerLogOpts, get getLog) (io.ReadCloser, error) {
				r, err := get(opts)
				if err == nil && opts.Follow {
					r = lasting{r, ctx}
				}
				return r, err
			})},
		{name: "a log follow that ends at once", caught: "logs/follow", wrap: ignores(func(o *api.ContainerLogOpts) { o.Follow = false })},
		{name: "a tail that is ignored", caught: "logs/tail", wrap: ignores(func(o *api.ContainerLogOpts) { o.Tail = 0 })},
		{name: "a limit that is ignored", caught: "logs/limit", wrap: ignores(func(o *api.ContainerLogOpts) { o.LimitBytes = 0 })},
		{name: "a time that is ignored", caught: "logs/since", wrap: ignores(func(o *api.ContainerLogOpts) { o.SinceTime = time.Time{} })},
		{name: "the wrong run in the place of the previous one", caught: "logs/no-previous", wrap: ignores(func(o *api.ContainerLogOpts) { o.Previous = false })},
		{name: "wrong timestamps", caught: "logs/timestamps", wrap: reads(
			func(_ context.Context, opts api.ContainerLogOpts, get getLog) (io.ReadCloser, error) {
				stamped := opts.Timestamps
				opts.Timestamps = false
				r, err := get(opts)
				if err != nil || !stamped {
					return r, err
				}
				text, err := io.ReadAll(r)
				return io.NopCloser(bytes.NewReader(bytes.ReplaceAll(append([]byte("\n"), text...), []byte("\n"), []byte("\n1970-01-01T00:00:00Z "))[1:])), errors.Join(err, r.Close())
			})},
		{name: "a missing log without a kind", caught: "logs/absent", wrap: reads(
			func(_ context.Context, opts api.ContainerLogOpts, get getLog) (io.ReadCloser, error) {
				r, err := get(opts)
				if err != nil {
					return nil, errors.New(err.Error())
				}
				return r, nil
			})},
		{name: "an exec that swallows the exit code", caught: "exec/exit-code", wrap: executes(
			func(ctx context.Context, attach api.AttachIO, exec func(context.Context, api.AttachIO) error) error {
				var exit interface{ ExitStatus() int }
				if err := exec(ctx, attach); !errors.As(err, &exit) {
					return err
				}
				return nil
			})},
		{name: "an exec that mixes its streams", caught: "exec/output", wrap: executes(
			func(ctx context.Context, attach api.AttachIO, exec func(context.Context, api.AttachIO) error) error {
				return exec(ctx, altered{AttachIO: attach, errors: attach.Stdout()})
			})},
		{name: "an exec that cuts its input", caught: "exec/stdin", wrap: executes(
			func(ctx context.Context, attach api.AttachIO, exec func(context.Context, api.AttachIO) error) error {
				if in := attach.Stdin(); in != nil {
					attach = altered{AttachIO: attach, in: io.LimitReader(in, 64<<10)}
				}
				return exec(ctx, attach)
			})},
		{name: "an exec whose terminal keeps its size", caught: "exec/terminal", wrap: executes(
			func(ctx context.Context, attach api.AttachIO, exec func(context.Context, api.AttachIO) error) error {
				if attach.TTY() {
					sizes := make(chan api.TermSize, 1)
					sizes <- <-attach.Resize()
					close(sizes)
					attach = altered{AttachIO: attach, sizes: sizes}
				}
				return exec(ctx, attach)
			})},
		{name: "an exec that outlives its caller", caught: "exec/cancel", wrap: executes(
			func(ctx context.Context, attach api.AttachIO, exec func(context.Context, api.AttachIO) error) error {
				return exec(context.WithoutCancel(ctx), attach)
			})},
		{name: "a missing container without a kind in exec", caught: "exec/absent", wrap: executes(
			func(ctx context.Context, attach api.AttachIO, exec func(context.Context, api.AttachIO) error) error {
				err := exec(ctx, attach)
				var exit interface{ ExitStatus() int }
				if err != nil && !errors.As(err, &exit) {
					return errors.New(err.Error())
				}
				return err
			})},
		{name: "a connection to nobody that hangs", caught: "port-forward/refused", also: []string{"port-forward/absent", "port-forward/both-ways"},
			wrap: func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return forwarder{p} }},
		{name: "stats without pods", caught: "stats/summary",
			wrap: func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return measurer{p} }},
	}
}
