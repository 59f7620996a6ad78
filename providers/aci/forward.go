// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// dialTimeout bounds how long the address of a pod is tried: without a route nothing answers.
const dialTimeout = 10 * time.Second

// PortForward is a connection to the address of the pod, where there is a route from this machine to its subnet: ACI has no such request.
func (p *provider) PortForward(ctx context.Context, namespace, name string, port int32, stream io.ReadWriteCloser) error {
	pod, err := p.GetPod(ctx, namespace, name)
	if err == nil {
		err = p.forward(ctx, pod, port, stream)
	}
	return errors.Join(err, stream.Close())
}

func (p *provider) forward(ctx context.Context, pod *corev1.Pod, port int32, stream io.ReadWriteCloser) error {
	if pod.Status.PodIP == "" {
		return errdefs.InvalidInputf("pod %s/%s has no address: pods have one in a subnet, or a public one, once they run", pod.Namespace, pod.Name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
	conn, err := p.dial(ctx, "tcp", to)
	if err != nil {
		return fmt.Errorf("pod %s/%s: connect to %s: %w: a route from this machine to the subnet is needed", pod.Namespace, pod.Name, to, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(conn, stream) // it ends with the stream, whose end the pod hears of
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err = io.Copy(stream, conn)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		err = nil // the caller has gone
	}
	_ = stream.Close()
	<-done
	return err
}

// dialer is how addresses of pods are reached.
func dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext
}
