// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// dialPatience is how long a pod may take to answer.
const dialPatience = 10 * time.Second

// PortForward dials the address of the pod, which only works where this process can reach it.
func (p *provider) PortForward(ctx context.Context, namespace, name string, port int32, stream io.ReadWriteCloser) error {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return err
	}
	if pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning {
		return errdefs.InvalidInputf("pod %s/%s has no address at Nomad", namespace, name)
	}
	conn, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("port-forward to pod %s/%s: Nomad has no such request, and this node does not reach the pod: %w", namespace, name, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close(); stream.Close() })
	defer stop()
	var running sync.WaitGroup
	running.Go(func() {
		_, _ = io.Copy(conn, stream)
		if half, ok := conn.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	})
	_, err = io.Copy(stream, conn)
	_ = stream.Close()
	running.Wait()
	return err
}
