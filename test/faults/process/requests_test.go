// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// stream runs a session of a subresource with options.
func (w *world) stream(ctx context.Context, req *rest.Request, options runtime.Object) error {
	executor, err := remotecommand.NewSPDYExecutor(w.api.Config, "POST", req.VersionedParams(options, scheme.ParameterCodec).URL())
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard})
}

// talk sends a text to the address and expects an echo.
func talk(ctx context.Context, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("word")); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 4))
	return err
}

// direct sends a request to the node itself, as the administrator.
func (w *world) direct(ctx context.Context, path string) error {
	node, err := w.api.Client.CoreV1().Nodes().Get(ctx, w.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	transport, err := rest.TransportFor(rest.CopyConfig(w.api.Config))
	if err != nil {
		return err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d%s", node.Status.DaemonEndpoints.KubeletEndpoint.Port, path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		w.Errorf("ask the node: %v", err)
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return errors.New(resp.Status + ": " + string(text))
	}
	return nil
}
