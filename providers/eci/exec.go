// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

// Exec implements service.Executor by a websocket. ECI reports neither the exit code nor the end of the input,
// so a shell of the image does. Without a shell there is only the output, and the end of the command is an
// error.
func (d *driver) Exec(ctx context.Context, in service.Target[instance], command []string, attach api.AttachIO) error {
	s, group := newSession(attach), in.Instance.status.ContainerGroupID
	shell, err := d.hasShell(ctx, group, in.Container, in.State.ContainerID)
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
	conn.SetPongHandler(func(string) error { return s.heard() })
	go s.send(ctx) // ends with the input, or with the first write after the end of conn
	return s.receive(ctx)
}

// hasShell runs a shell in a container by the request of ECI that returns the output. It remembers a shell for the run of the
// container, but not a missing shell, because the container may not have been ready.
func (d *driver) hasShell(ctx context.Context, group, container, run string) (bool, error) {
	return d.shells.Has(run, func(command []string) (string, error) {
		words, err := json.Marshal(command)
		if err != nil {
			return "", err
		}
		var answer execAnswer
		err = d.client.call(ctx, "ExecContainerCommand", execRequest{
			ContainerGroupID: group, ContainerName: container, Command: string(words), Stdin: new(false), Sync: true,
		}, &answer)
		var said *apiError
		if _, later := errdefs.RetryAfterOf(err); !later && errors.As(err, &said) && said.status == http.StatusBadRequest { // the answer of ECI for a missing shell is not documented
			return "", nil
		}
		return answer.SyncResponse, err
	})
}

// open requests a session, and connects to it until ctx ends. Its address is valid for 30 s.
func (d *driver) open(ctx context.Context, request execRequest) (*websession.Session, error) {
	var answer execAnswer
	if err := d.client.call(ctx, "ExecContainerCommand", request, &answer); err != nil {
		return nil, err
	}
	s, err := websession.Open(ctx, answer.WebSocketURI, websession.Options{TLS: &tls.Config{RootCAs: d.roots, MinVersion: tls.VersionTLS12}})
	if errors.Is(err, websession.ErrAddress) {
		err = fmt.Errorf("ExecContainerCommand: %w", err)
	}
	return s, err
}
