// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"context"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

// Exec implements service.Executor by a websocket, through a shell of the image. Both outputs are one stream.
func (d *driver) Exec(ctx context.Context, in service.Target[instance], command []string, attach api.AttachIO) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	size := shellexec.FirstSize(ctx, attach) // for the whole session: ACI has no request that changes the size
	answer, err := d.client.exec(ctx, value(in.Instance.group.Name), in.Container, aci.ContainerExecRequest{
		Command: new(shell), TerminalSize: &aci.ContainerExecRequestTerminalSize{Rows: new(int32(cmp.Or(size.Height, 24))), Cols: new(int32(cmp.Or(size.Width, 80)))},
	})
	if err != nil {
		return err
	}
	conn, err := websession.Open(ctx, value(answer.WebSocketURI), websession.Options{TLS: d.tls})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(value(answer.Password))); err != nil {
		return err
	}
	e := service.Shell(attach, shellexec.Options{Command: command, By: shellexec.Typing, Terminal: true})
	go func() { _ = e.Send(ctx, attach.Stdin(), conn.Send) }() // ends with the session
	return receive(ctx, conn, e)
}

// shell is the program that ACI runs: one program, without arguments, on a terminal.
const shell = "/bin/sh"

// receive passes the output on until the shell reports how the command ended.
func receive(ctx context.Context, conn *websession.Session, e *shellexec.Exec) error {
	limit := time.Now().Add(callTimeout)
	begun := e.Begun()
	for {
		if err := conn.SetReadDeadline(limit); err != nil {
			return err
		}
		_, data, err := conn.ReadMessage()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case begun != nil:
			return errdefs.InvalidInput("the command did not begin: it needs " + shell + " in the image, as ACI runs one program and tells no exit code")
		default:
			_ = e.Flush()
			return errdefs.InvalidInput("the session ended before the command said how it ended: the container may have ended")
		}
		if _, err := e.Write(data); err != nil {
			return err
		}
		if ended, err := e.Ended(); ended {
			return err
		}
		select {
		case <-begun:
			limit, begun = time.Time{}, nil
		default:
		}
	}
}
