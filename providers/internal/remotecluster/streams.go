// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// container returns the remote pod of a container.
func (c *Cluster) container(ctx context.Context, namespace, name, container string) (*corev1.Pod, error) {
	remote, err := c.findName(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]corev1.Container{remote.Spec.InitContainers, remote.Spec.Containers} {
		if slices.ContainsFunc(list, func(k corev1.Container) bool { return k.Name == container }) {
			return remote, nil
		}
	}
	return nil, errdefs.NotFoundf("pod %s/%s has no container %q", namespace, name, container)
}

// GetContainerLogs returns the log of a container, which the remote API server has from its node.
func (c *Cluster) GetContainerLogs(ctx context.Context, namespace, name, container string, o api.ContainerLogOpts) (io.ReadCloser, error) {
	remote, err := c.container(ctx, namespace, name, container)
	if err != nil {
		return nil, err
	}
	log, err := c.client.CoreV1().Pods(remote.Namespace).GetLogs(remote.Name, logOptions(container, o)).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("log of container %s of pod %s/%s: %w", container, namespace, name, kind(err))
	}
	return log, nil
}

func logOptions(container string, o api.ContainerLogOpts) *corev1.PodLogOptions {
	out := &corev1.PodLogOptions{Container: container, Follow: o.Follow, Previous: o.Previous, Timestamps: o.Timestamps}
	if o.Tail > 0 {
		out.TailLines = ptr.To(int64(o.Tail))
	}
	if o.LimitBytes > 0 {
		out.LimitBytes = ptr.To(int64(o.LimitBytes))
	}
	if o.SinceSeconds > 0 {
		out.SinceSeconds = ptr.To(int64(o.SinceSeconds))
	} else if !o.SinceTime.IsZero() {
		out.SinceTime = &metav1.Time{Time: o.SinceTime}
	}
	return out
}

// RunInContainer runs a command in a container.
func (c *Cluster) RunInContainer(ctx context.Context, namespace, name, container string, command []string, io api.AttachIO) error {
	return c.session(ctx, namespace, name, container, "exec", &corev1.PodExecOptions{
		Container: container, Command: command, Stdin: io.Stdin() != nil, Stdout: io.Stdout() != nil, Stderr: io.Stderr() != nil, TTY: io.TTY(),
	}, io)
}

// AttachToContainer connects to the main process of a container.
func (c *Cluster) AttachToContainer(ctx context.Context, namespace, name, container string, io api.AttachIO) error {
	return c.session(ctx, namespace, name, container, "attach", &corev1.PodAttachOptions{
		Container: container, Stdin: io.Stdin() != nil, Stdout: io.Stdout() != nil, Stderr: io.Stderr() != nil, TTY: io.TTY(),
	}, io)
}

// session is an exec or an attach, over a websocket, or over SPDY where there is none.
func (c *Cluster) session(ctx context.Context, namespace, name, container, kindOf string, options runtime.Object, with api.AttachIO) error {
	remote, err := c.container(ctx, namespace, name, container)
	if err != nil {
		return err
	}
	to := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(remote.Namespace).Name(remote.Name).
		SubResource(kindOf).VersionedParams(options, scheme.ParameterCodec).URL()
	overSPDY, err := remotecommand.NewSPDYExecutor(c.streams, http.MethodPost, to)
	if err != nil {
		return err
	}
	overWebsocket, err := remotecommand.NewWebSocketExecutor(c.streams, http.MethodGet, to.String())
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewFallbackExecutor(overWebsocket, overSPDY, notSpoken)
	if err != nil {
		return err
	}
	err = executor.StreamWithContext(ctx, streamsOf(ctx, with))
	var exit interface{ ExitStatus() int }
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return fmt.Errorf("%s in container %s of pod %s/%s: %w", kindOf, container, namespace, name, kind(err))
}

// notSpoken reports whether the other side does not speak the protocol.
func notSpoken(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

func streamsOf(ctx context.Context, with api.AttachIO) remotecommand.StreamOptions {
	o := remotecommand.StreamOptions{Tty: with.TTY()}
	if in := with.Stdin(); in != nil {
		o.Stdin = in
	}
	if out := with.Stdout(); out != nil {
		o.Stdout = out
	}
	if err := with.Stderr(); err != nil {
		o.Stderr = err
	}
	if sizes := with.Resize(); sizes != nil {
		o.TerminalSizeQueue = sizeQueue{ctx, sizes}
	}
	return o
}

// sizeQueue are the sizes of the caller's terminal. It lives as long as the session, whose context it has.
type sizeQueue struct {
	ctx   context.Context
	sizes <-chan api.TermSize
}

// Next waits for the next size; nil is the end.
func (q sizeQueue) Next() *remotecommand.TerminalSize {
	select {
	case size, ok := <-q.sizes:
		if ok {
			return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
		}
	case <-q.ctx.Done():
	}
	return nil
}

// PortForward connects to a port of a pod.
func (c *Cluster) PortForward(ctx context.Context, namespace, name string, port int32, with io.ReadWriteCloser) error {
	remote, err := c.findName(ctx, namespace, name)
	if err != nil {
		return err
	}
	to := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(remote.Namespace).Name(remote.Name).SubResource("portforward").URL()
	conn, err := dial(ctx, c.streams, to)
	if err != nil {
		return fmt.Errorf("forward to port %d of pod %s/%s: %w", port, namespace, name, kind(err))
	}
	defer conn.Close()
	if err := forward(conn, port, with); err != nil && ctx.Err() == nil {
		return fmt.Errorf("forward to port %d of pod %s/%s: %w", port, namespace, name, err)
	}
	return ctx.Err()
}

// reasonTimeout is how long the reason of an end may take when the data of a connection has ended.
const reasonTimeout = 5 * time.Second

// forward copies one connection in both directions, until the pod's side ends or says why it cannot go on.
func forward(conn httpstream.Connection, port int32, with io.ReadWriteCloser) error {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := conn.CreateStream(headers)
	if err != nil {
		return err
	}
	_ = failures.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return err
	}
	said := make(chan error, 1)
	go func() { // ends with the connection
		message, _ := io.ReadAll(failures) // a connection that breaks says nothing of the port
		if len(message) > 0 {
			said <- errors.New(string(message))
			return
		}
		said <- nil
	}()
	received := make(chan struct{})
	go func() { // ends with the connection, or with the caller
		_, _ = io.Copy(with, data)
		close(received)
	}()
	sentAll := make(chan struct{})
	go func() { // ends with the caller
		_, _ = io.Copy(data, with)
		_ = data.Close()
		close(sentAll)
	}()
	var failed error
	select {
	case failed = <-said:
		if failed == nil {
			<-received
		}
	case <-received: // why it ended, if there is a reason, comes on the other stream
		timer := time.NewTimer(reasonTimeout)
		defer timer.Stop()
		select {
		case failed = <-said:
		case <-sentAll: // the caller left
		case <-timer.C:
		}
	}
	_ = with.Close()
	_ = conn.Close()
	return failed
}
