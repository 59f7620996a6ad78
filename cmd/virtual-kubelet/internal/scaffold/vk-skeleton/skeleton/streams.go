// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// find returns the ID of the group of a pod that has the container.
func (p *provider) find(ctx context.Context, namespace, pod, container string) (id string, err error) {
	g, err := p.group(ctx, namespace, pod)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(g.Want, func(c containerSpec) bool { return c.Name == container }) {
		return "", errdefs.NotFoundf("pod %s/%s has no container %q", namespace, pod, container)
	}
	return string(g.ID), nil
}

// GetContainerLogs returns the log of a container.
func (p *provider) GetContainerLogs(ctx context.Context, namespace, pod, container string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	id, err := p.find(ctx, namespace, pod, container)
	if err != nil {
		return nil, err
	}
	lines, err := p.service.Logs(ctx, id, container, opts.Previous)
	if err != nil {
		return nil, fmt.Errorf("read the log of container %s of pod %s/%s: %w", container, namespace, pod, err)
	}
	return logs.NewReader(ctx, lines, opts, time.Now()), nil
}

// RunInContainer runs a command in a container.
func (p *provider) RunInContainer(ctx context.Context, namespace, pod, container string, command []string, attach api.AttachIO) error {
	id, err := p.find(ctx, namespace, pod, container)
	if err != nil {
		return err
	}
	exit, err := p.service.Exec(ctx, id, container, command, sessionOf(attach))
	if err != nil {
		return fmt.Errorf("exec in container %s of pod %s/%s: %w", container, namespace, pod, err)
	}
	if exit != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("the command ended with exit code %d", exit), Code: exit}
	}
	return nil
}

func sessionOf(attach api.AttachIO) session {
	s := session{Stdin: attach.Stdin(), Stdout: io.Discard, Stderr: io.Discard}
	if out := attach.Stdout(); out != nil {
		s.Stdout = out
	}
	if errs := attach.Stderr(); errs != nil {
		s.Stderr = errs
	} else if attach.TTY() {
		s.Stderr = s.Stdout
	}
	if attach.TTY() {
		s.Sizes = attach.Resize()
	}
	return s
}

// AttachToContainer shows what a container prints from now on. Nothing can be typed: InteractiveContainers is not declared.
func (p *provider) AttachToContainer(ctx context.Context, namespace, pod, container string, attach api.AttachIO) error {
	lines, err := p.GetContainerLogs(ctx, namespace, pod, container, api.ContainerLogOpts{Follow: true, SinceTime: time.Now()})
	if err != nil {
		return err
	}
	defer lines.Close()
	_, err = io.Copy(sessionOf(attach).Stdout, lines)
	return err
}

// PortForward copies between a port of a pod and stream.
func (p *provider) PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error {
	g, err := p.group(ctx, namespace, pod)
	if err != nil {
		return err
	}
	conn, err := p.service.Dial(ctx, string(g.ID), port)
	if err != nil {
		return fmt.Errorf("connect with port %d of pod %s/%s: %w", port, namespace, pod, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close(); stream.Close() })
	defer stop()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(stream, conn) // either side may end it
		stream.Close()
	})
	_, err = io.Copy(conn, stream)
	conn.Close()
	back.Wait()
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}
