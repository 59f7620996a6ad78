// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// PortForward connects to a port of a pod.
func (c *Cluster) PortForward(ctx context.Context, namespace, name string, port int32, with io.ReadWriteCloser) error {
	remote, err := c.findName(ctx, namespace, name)
	if err != nil {
		return err
	}
	to := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(remote.Namespace).Name(remote.Name).SubResource("portforward").URL()
	conn, err := dialPod(ctx, c.streams, to)
	if err != nil {
		return fmt.Errorf("forward to port %d of pod %s/%s: %w", port, namespace, name, classifyError(err))
	}
	defer conn.Close()
	if err := forwardPort(conn, port, with); err != nil && ctx.Err() == nil {
		return fmt.Errorf("forward to port %d of pod %s/%s: %w", port, namespace, name, err)
	}
	return ctx.Err()
}

// reasonTimeout is how long to wait for an error message after the data of a connection has ended.
const reasonTimeout = 5 * time.Second

// forwardPort copies one connection in both directions, until the pod's side closes it or reports an error.
func forwardPort(conn httpstream.Connection, port int32, with io.ReadWriteCloser) error {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := conn.CreateStream(headers)
	if err != nil {
		return err
	}
	_ = failures.Close() // nothing is written to the error stream
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return err
	}
	said := make(chan error, 1)
	go func() { // ends with the connection
		message, _ := io.ReadAll(failures) // a broken connection is not an error of the port
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
	case <-received: // wait for an error on the error stream
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
