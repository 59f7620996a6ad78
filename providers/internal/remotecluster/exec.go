// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// RunInContainer runs a command in a container.
func (c *Cluster) RunInContainer(ctx context.Context, namespace, name, container string, command []string, io api.AttachIO) error {
	return c.runSession(ctx, namespace, name, container, "exec", &corev1.PodExecOptions{
		Container: container, Command: command, Stdin: io.Stdin() != nil, Stdout: io.Stdout() != nil, Stderr: io.Stderr() != nil, TTY: io.TTY(),
	}, io)
}

// runSession runs an exec or attach session, over a websocket, or over SPDY if the server does not support
// websockets.
func (c *Cluster) runSession(ctx context.Context, namespace, name, container, kindOf string, options runtime.Object, with api.AttachIO) error {
	remote, err := c.podOfContainer(ctx, namespace, name, container)
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
	return fmt.Errorf("%s in container %s of pod %s/%s: %w", kindOf, container, namespace, name, classifyError(err))
}

// notSpoken reports whether an error means that the server does not support the protocol.
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

// sizeQueue passes on the sizes of the caller's terminal. ctx is the context of the session.
type sizeQueue struct {
	ctx   context.Context
	sizes <-chan api.TermSize
}

// Next waits for the next size. It returns nil at the end.
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
