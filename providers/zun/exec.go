// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/openstack"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

// Exec implements service.Executor, through a shell of the image on a terminal. Without a shell Zun runs the command itself, and waits for 5 s.
func (d *driver) Exec(ctx context.Context, in service.Target[instance], command []string, attach api.AttachIO) error {
	if err := in.Instance.noSession("exec"); err != nil {
		return err
	}
	uuid := in.Instance.UUID
	has, err := d.shells.Has(in.State.ContainerID+"/"+strconv.Itoa(int(in.State.RestartCount)), func(command []string) (string, error) {
		answer, err := d.client.executeCommand(ctx, uuid, command, false)
		return answer.Output, err
	})
	if err != nil {
		return err
	}
	if !has {
		return d.runShort(ctx, uuid, command, attach)
	}
	e := service.Shell(attach, shellexec.Options{Command: command, By: shellexec.Reading, Terminal: true})
	answer, err := d.client.executeCommand(ctx, uuid, e.Command(), true)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := d.openSession(ctx, answer.ProxyURL, attach, func(size url.Values) error {
		size.Set("exec_id", answer.ExecID)
		_, err := d.client.requestAction(ctx, uuid, "execute_resize", size)
		return err
	})
	if err != nil {
		return err
	}
	go func() { _ = e.Send(ctx, attach.Stdin(), s.Send) }() // ends with the session
	for {
		_, data, err := s.ReadMessage()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			_ = e.Flush()
			return errors.New("the session ended before the command did, and Zun does not tell how")
		}
		if _, err := e.Write(data); err != nil {
			return err
		}
		if ended, err := e.Ended(); ended {
			return err
		}
	}
}

// openSession opens a session at the console proxy of Zun: binary messages, without channels. It passes the sizes of a terminal to
// resize until ctx ends.
func (d *driver) openSession(ctx context.Context, address string, attach api.AttachIO, resize func(url.Values) error) (*websession.Session, error) {
	o := websession.Options{Protocols: []string{"binary"}, Plain: d.config.AllowPlainConsole}
	if t, ok := d.client.HTTP.Transport.(*http.Transport); ok {
		o.TLS = t.TLSClientConfig
	}
	s, err := websession.Open(ctx, address, o)
	if errors.Is(err, websession.ErrAddress) {
		err = fmt.Errorf("%w, and whoever reads the address is let in: let [websocket_proxy] base_url of Zun begin with wss://, or set allowPlainConsole", err)
	}
	if err == nil {
		go shellexec.EachSize(ctx, attach, func(size api.TermSize) {
			_ = resize(url.Values{"h": {strconv.Itoa(int(size.Height))}, "w": {strconv.Itoa(int(size.Width))}}) // the next one may do
		})
	}
	return s, err
}

// runShort runs a command through Zun, and returns its output at the end.
func (d *driver) runShort(ctx context.Context, uuid string, command []string, attach api.AttachIO) error {
	if attach.TTY() || attach.Stdin() != nil {
		return errdefs.InvalidInput("a terminal or an input needs sh in the image: Zun tells neither the exit code nor the end of an input")
	}
	service.Begun(attach)
	answer, err := d.client.executeCommand(ctx, uuid, command, false)
	if openstack.StatusOf(err) == http.StatusConflict {
		return fmt.Errorf("%w: without sh in the image Zun waits 5 s for a command, and the command goes on", err)
	}
	if err != nil {
		return err
	}
	if w := attach.Stdout(); w != nil {
		if _, err := io.WriteString(w, answer.Output); err != nil {
			return err
		}
	}
	switch {
	case answer.ExitCode == nil:
		return errors.New("how the command ended is not told by Zun")
	case *answer.ExitCode != 0:
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", *answer.ExitCode), Code: *answer.ExitCode}
	}
	return nil
}

// longestCommand is the maximum number of bytes of a command in a URL: OpenStack servers accept a request line of up to 8 KiB.
const longestCommand = 7 << 10

// executed is the response to an exec.
type executed struct {
	Output   string `json:"output"`
	ExitCode *int   `json:"exit_code"`
	ExecID   string `json:"exec_id"`
	ProxyURL string `json:"proxy_url"`
}

// executeCommand runs a command in a container. Zun splits the command like a shell.
func (c *client) executeCommand(ctx context.Context, uuid string, command []string, terminal bool) (answer executed, err error) {
	query := url.Values{"command": {shellexec.Line(command)}, "run": {strconv.FormatBool(!terminal)}, "interactive": {strconv.FormatBool(terminal)}}
	if n := len(query.Encode()); n > longestCommand {
		return answer, errdefs.InvalidInputf("the command has %d bytes in the address of a request, and Zun takes %d: put it into a file", n, longestCommand)
	}
	_, err = c.call(ctx, "run a command", http.MethodPost, containers+"/"+uuid+"/execute", query, nil, &answer)
	return answer, err
}
