// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/gorilla/websocket"
	nomadapi "github.com/hashicorp/nomad/api"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

// Exec implements service.Executor by a websocket of the agent.
func (d *driver) Exec(ctx context.Context, in service.Target[*instance], command []string, attach api.AttachIO) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := d.client.exec(ctx, in.Instance.alloc.ID, in.Container, command, attach.TTY())
	if err != nil {
		return err
	}
	defer conn.Close()
	service.Begun(attach)
	s := execSession{conn: websession.Keep(ctx, conn), attach: attach}
	go s.send() // ends with the input, or with the first write after the end of conn
	go shellexec.EachSize(ctx, attach, func(size api.TermSize) {
		_ = s.conn.SendJSON(nomadapi.ExecStreamingInput{TTYSize: &nomadapi.TerminalSize{Height: int(size.Height), Width: int(size.Width)}})
	})
	return s.receive(ctx)
}

// exec opens a session.
func (c *client) exec(ctx context.Context, alloc, task string, command []string, tty bool) (*websocket.Conn, error) {
	encoded, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	path := "/v1/client/allocation/" + alloc + "/exec"
	u := c.url(path, query{"task": {task}, "command": {string(encoded)}, "tty": {strconv.FormatBool(tty)}})
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	dialer := websocket.Dialer{Proxy: c.proxy, HandshakeTimeout: requestTimeout, NetDialTLSContext: c.tls.DialTLS}
	conn, answer, err := dialer.DialContext(ctx, u.String(), c.header(ctx))
	if answer == nil || err == nil {
		return conn, err
	}
	defer answer.Body.Close()
	if refusal := refused("exec", answer); refusal != nil {
		return nil, refusal
	}
	return nil, err
}

// execSession is a running command.
type execSession struct {
	conn   *websession.Session
	attach api.AttachIO
}

// send sends the input, and then its end.
func (s *execSession) send() {
	write := func(io *nomadapi.ExecStreamingIOOperation) error {
		return s.conn.SendJSON(nomadapi.ExecStreamingInput{Stdin: io})
	}
	websession.CopyInput(s.attach.Stdin(), func(data []byte) error { return write(&nomadapi.ExecStreamingIOOperation{Data: data}) })
	_ = write(&nomadapi.ExecStreamingIOOperation{Close: true}) // fails after the session
}

// receive writes the output until the command has ended.
func (s *execSession) receive(ctx context.Context) error {
	for {
		var out nomadapi.ExecStreamingOutput
		if err := s.conn.ReadJSON(&out); err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) && closed.Text != "" {
				err = errors.New(said([]byte(closed.Text)))
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return fmt.Errorf("the session with Nomad ended before the command did: %w", err)
		}
		switch {
		case out.Stdout != nil && len(out.Stdout.Data) > 0:
			if w := s.attach.Stdout(); w != nil {
				if _, err := w.Write(out.Stdout.Data); err != nil {
					return err
				}
			}
		case out.Stderr != nil && len(out.Stderr.Data) > 0:
			if w := s.attach.Stderr(); w != nil {
				if _, err := w.Write(out.Stderr.Data); err != nil {
					return err
				}
			}
		case out.Exited && out.Result != nil && out.Result.ExitCode != 0:
			return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", out.Result.ExitCode), Code: out.Result.ExitCode}
		case out.Exited && out.Result != nil:
			return nil
		}
	}
}
