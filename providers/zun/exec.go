// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

// Exec implements service.Executor, through a shell of the image on a terminal. Without a shell Zun runs the command itself, and waits for 5 s.
func (d *driver) Exec(ctx context.Context, in service.Target[instance], command []string, attach api.AttachIO) error {
	if err := in.Instance.noSession("exec"); err != nil {
		return err
	}
	uuid := in.Instance.UUID
	has, err := d.hasShell(ctx, uuid, in.State.ContainerID+"/"+strconv.Itoa(int(in.State.RestartCount)))
	if err != nil {
		return err
	}
	if !has {
		return d.runShort(ctx, uuid, command, attach)
	}
	o := shellexec.Options{Command: command, By: shellexec.Reading, TTY: attach.TTY(), Terminal: true, Input: attach.Stdin() != nil}
	if w := attach.Stdout(); w != nil {
		o.Stdout = w
	}
	e := shellexec.New(o)
	var answer executed
	if err := d.client.execute(ctx, uuid, e.Command(), true, &answer); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := d.open(ctx, answer.ProxyURL)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	go s.resize(ctx, attach, func(ctx context.Context, size url.Values) error {
		size.Set("exec_id", answer.ExecID)
		_, err := d.client.do(ctx, uuid, "execute_resize", size)
		return err
	})
	go func() { _ = e.Send(ctx, attach.Stdin(), s.write) }() // it ends with the session
	err = s.receive(ctx, func(data []byte) (bool, error) {
		if _, err := e.Write(data); err != nil {
			return true, err
		}
		select {
		case <-e.Begun():
			service.Begun(attach)
		default:
		}
		return e.Ended()
	})
	if errors.Is(err, errClosed) {
		_ = e.Flush()
		return errors.New("the session ended before the command did, and Zun does not tell how")
	}
	return err
}

// runShort lets Zun run a command, and returns its output at the end.
func (d *driver) runShort(ctx context.Context, uuid string, command []string, attach api.AttachIO) error {
	if attach.TTY() || attach.Stdin() != nil {
		return errdefs.InvalidInput("a terminal or an input needs sh in the image: Zun tells neither the exit code nor the end of an input")
	}
	var answer executed
	service.Begun(attach)
	err := d.client.execute(ctx, uuid, command, false, &answer)
	if statusOf(err) == http.StatusConflict {
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

// longestCommand is the maximum number of bytes of a command in an address: servers of OpenStack take a first
// line of 8 KiB.
const longestCommand = 7 << 10

// executed is the answer to an exec.
type executed struct {
	Output   string `json:"output"`
	ExitCode *int   `json:"exit_code"`
	ExecID   string `json:"exec_id"`
	ProxyURL string `json:"proxy_url"`
}

// execute asks for a command in a container.
func (c *client) execute(ctx context.Context, uuid string, command []string, terminal bool, answer *executed) error {
	quoted := make([]string, 0, len(command))
	for _, word := range command {
		quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'"'"'`)+"'") // Zun reads it as a shell reads words
	}
	query := url.Values{"command": {strings.Join(quoted, " ")}, "run": {strconv.FormatBool(!terminal)}, "interactive": {strconv.FormatBool(terminal)}}
	if n := len(query.Encode()); n > longestCommand {
		return errdefs.InvalidInputf("the command has %d bytes in the address of a request, and Zun takes %d: put it into a file", n, longestCommand)
	}
	_, err := c.call(ctx, "run a command", http.MethodPost, containers+"/"+uuid+"/execute", query, nil, answer)
	return err
}

// mostShells is the maximum number of runs of containers that are remembered to have a shell.
const mostShells = 1000

// hasShell reports whether a container can run a shell, by running one. It does not ask again about a run with a
// shell.
func (d *driver) hasShell(ctx context.Context, uuid, run string) (bool, error) {
	d.mu.Lock()
	has := d.shells[run]
	d.mu.Unlock()
	if has {
		return true, nil
	}
	mark := rand.Text()
	var answer executed
	if err := d.client.execute(ctx, uuid, []string{"sh", "-c", "echo " + mark}, false, &answer); err != nil || !strings.Contains(answer.Output, mark) {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.shells) >= mostShells {
		clear(d.shells)
	}
	d.shells[run] = true
	return true, nil
}
