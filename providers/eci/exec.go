// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

// dialTimeout bounds the opening of a session. Its address is valid for 30 s.
const dialTimeout = 30 * time.Second

// Exec implements service.Executor by a websocket. ECI reports neither the exit code nor the end of the input,
// so a shell of the image does. Without a shell there is only the output, and the end of the command is an
// error.
func (d *driver) Exec(ctx context.Context, in service.Target[instance], command []string, attach api.AttachIO) error {
	s := session{attach: attach, container: in.Container}
	group := in.Instance.status.ContainerGroupID
	shell, err := d.shells.has(ctx, d.client, group, in.Container, in.State.ContainerID)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	size := shellexec.FirstSize(ctx, attach) // no documentation tells how to send later sizes
	if shell {
		s.useShell(command, size.Height, size.Width)
	}
	words, err := s.words(command)
	if err != nil {
		return err
	}
	conn, err := d.open(ctx, execRequest{
		ContainerGroupID: group, ContainerName: in.Container, Command: words, TTY: attach.TTY(), Stdin: new(s.hasInput()),
	})
	if err != nil {
		return err
	}
	if s.conn = conn; s.shell == nil {
		service.Begun(attach)
	}
	defer conn.Close()
	conn.SetReadLimit(maxMessage)
	conn.SetPongHandler(func(string) error { return s.heard() })
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	go s.send(ctx) // ends with the input, or with the first write after the end of conn
	go s.beat(ctx)
	return s.receive(ctx)
}

// open asks for a session, and opens it. The address is a key to the container, so no error contains it.
func (d *driver) open(ctx context.Context, request execRequest) (*websocket.Conn, error) {
	var answer execAnswer
	if err := d.client.call(ctx, "ExecContainerCommand", request, &answer); err != nil {
		return nil, err
	}
	u, err := url.Parse(answer.WebSocketURI)
	if err != nil || u.Scheme != "wss" || u.Host == "" {
		return nil, errors.New("ExecContainerCommand: ECI gives no address of a session that begins with wss://")
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialTimeout, TLSClientConfig: &tls.Config{RootCAs: d.roots, MinVersion: tls.VersionTLS12}}
	conn, refusal, err := dialer.DialContext(ctx, u.String(), nil)
	if refusal != nil && refusal.Body != nil {
		refusal.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("open the session at %s: %w", u.Host, err)
	}
	return conn, nil
}
