// SPDX-License-Identifier: Apache-2.0

package service

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

// dialPatience bounds the connection attempts to the address of a pod: without a route there is no response.
const dialPatience = 10 * time.Second

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// ForwardByDial copies between a stream and a port of a pod, for a Forwarder of a service without such a
// request. It connects to the address of the pod, so this process must reach that address. A nil dial uses the
// network of this process. ForwardByDial closes the stream when it returns.
func ForwardByDial(ctx context.Context, dial Dial, pod *corev1.Pod, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	if pod.Status.PodIP == "" {
		return errdefs.InvalidInput("the pod has no address")
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialPatience}).DialContext
	}
	address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w: a route from this machine to the pod is needed", address, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close(); stream.Close() })()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(conn, stream) // the other direction returns the error
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the pod may still send data
		}
	}()
	_, err = io.Copy(stream, conn)
	stream.Close() // ends the other direction
	<-sent
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return nil // the caller has disconnected
	}
	return err
}
