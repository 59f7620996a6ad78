// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// PortForward serves HTTP on every port that a container of the pod declares. It answers any request with one
// line that names the pod and the port.
func (p *provider) PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error {
	if err := p.checkPort(namespace, pod, port); err != nil {
		return err
	}
	// A read on the stream ends only when the stream does.
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	defer stream.Close()

	in := bufio.NewReader(stream)
	for {
		request, err := http.ReadRequest(in)
		switch {
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("serve port %d of pod %s/%s: %w", port, namespace, pod, err)
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return fmt.Errorf("serve port %d of pod %s/%s: %w", port, namespace, pod, err)
		}
		body := fmt.Sprintf("pod %s/%s answers on port %d\n", namespace, pod, port)
		response := http.Response{
			StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: request.Close,
			Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
			ContentLength: int64(len(body)),
			Body:          io.NopCloser(strings.NewReader(body)),
		}
		if err := response.Write(stream); err != nil || request.Close {
			return err
		}
	}
}

// checkPort refuses connections that a real container would refuse.
func (p *provider) checkPort(namespace, pod string, port int32) error {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.get(namespace, pod, now)
	if err != nil {
		return err
	}
	if s.life.momentAt(now).stage != running {
		return errdefs.InvalidInputf("pod %s/%s is not running", namespace, pod)
	}
	for _, list := range [][]corev1.Container{s.pod.Spec.Containers, s.pod.Spec.InitContainers} {
		for _, c := range list {
			for _, declared := range c.Ports {
				if declared.ContainerPort == port && (declared.Protocol == "" || declared.Protocol == corev1.ProtocolTCP) {
					return nil
				}
			}
		}
	}
	return errdefs.InvalidInputf("pod %s/%s does not listen on port %d: a mock pod listens on the TCP ports that its containers declare", namespace, pod, port)
}
