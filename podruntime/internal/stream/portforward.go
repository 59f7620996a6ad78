// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// forwardPort connects the port-forward session at a URL to conn.
func forwardPort(ctx context.Context, url string, port int32, conn io.ReadWriteCloser) error {
	session, err := openConnection(ctx, url, portforward.ProtocolV1Name)
	if err != nil {
		return err
	}
	defer session.close()
	headers := []string{corev1.PortHeader, strconv.Itoa(int(port)), corev1.PortForwardRequestIDHeader, "0", corev1.StreamType}
	problem, err := session.createStream(append(headers, corev1.StreamTypeError)...)
	if err != nil {
		return err
	}
	_ = problem.Close() // only the server writes to this stream
	data, err := session.createStream(append(headers, corev1.StreamTypeData)...)
	if err != nil {
		return err
	}
	if err := joinStreams(ctx, conn, data, func() { _ = data.Close() }); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(problem, maxStatus))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("forward port %d: %w", port, err)
	case len(text) > 0:
		return errors.New(strings.TrimSpace(string(text)))
	}
	return nil
}

// joinStreams copies between a client and a pod until the pod has sent all its data, or ctx has closed the connection to the pod. When the client has
// sent all its data, joinStreams calls ended, which signals the end to the pod.
func joinStreams(ctx context.Context, client io.ReadWriteCloser, pod io.ReadWriter, ended func()) error {
	go func() {
		_, _ = io.Copy(pod, client)
		ended()
	}()
	received := make(chan struct{})
	go func() {
		defer close(received)
		passOn(client, pod)
	}()
	select {
	case <-received:
		closeClient(client)
		return nil
	case <-ctx.Done():
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		closeClient(client)
		<-received
	}()
	waitBriefly(left)
	return context.Cause(ctx)
}

// closeClient ends the stream of a client, so that reads from it end, because Close only ends the writes.
func closeClient(client io.ReadWriteCloser) {
	_ = client.Close()
	if stream, ok := client.(interface{ Reset() error }); ok {
		_ = stream.Reset()
	}
}
