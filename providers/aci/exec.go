// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// RunInContainer runs a command by a websocket, through a shell of the image. Both outputs are one stream.
func (p *provider) RunInContainer(ctx context.Context, namespace, pod, name string, command []string, attach api.AttachIO) error {
	i, err := p.running(ctx, namespace, pod, name)
	if err != nil {
		return err
	}
	size := api.TermSize{Width: 80, Height: 24}
	if attach.TTY() { // which has this size until it ends: ACI has no request that changes it
		size = firstSize(ctx, attach.Resize(), size)
	}
	answer, err := p.client.exec(ctx, value(i.group.Name), name, aci.ContainerExecRequest{
		Command: new(shell), TerminalSize: &aci.ContainerExecRequestTerminalSize{Rows: new(int32(size.Height)), Cols: new(int32(size.Width))},
	})
	if err != nil {
		return err
	}
	dialer := websocket.Dialer{Proxy: p.proxy, TLSClientConfig: p.tls.Clone(), HandshakeTimeout: callTimeout}
	if dialer.TLSClientConfig != nil {
		dialer.TLSClientConfig.NextProtos = nil // a websocket is HTTP/1.1, and the transport of the requests has added its own
	}
	conn, response, err := dialer.DialContext(ctx, value(answer.WebSocketURI), nil)
	if response != nil && response.Body != nil {
		defer response.Body.Close()
	}
	if err != nil { // the error may have the URI, which lets in whoever has it
		return fmt.Errorf("exec in pod %s/%s: the session of ACI cannot be opened: %w", namespace, pod, quietly(err))
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	s := &session{conn: conn, attach: attach}
	if err := s.run(ctx, value(answer.Password), command); err != nil {
		var exit utilexec.ExitError
		if errors.As(err, &exit) {
			return err
		}
		return fmt.Errorf("exec in pod %s/%s: %w", namespace, pod, err)
	}
	return nil
}

// sizePatience is how long the first size of a terminal is waited for.
const sizePatience = 250 * time.Millisecond

func firstSize(ctx context.Context, sizes <-chan api.TermSize, otherwise api.TermSize) api.TermSize {
	timer := time.NewTimer(sizePatience)
	defer timer.Stop()
	select {
	case size, ok := <-sizes:
		if ok && size.Width > 0 && size.Height > 0 {
			return size
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return otherwise
}

// quietly is an error of the dialer without the URI of the session, which only one that cannot be read quotes.
func quietly(err error) error {
	var unread *url.Error
	if errors.As(err, &unread) {
		return errors.New("its URI cannot be read")
	}
	return err
}

// session is a command that runs.
type session struct {
	conn   *websocket.Conn
	attach api.AttachIO
	held   []byte // what came and was not looked at yet
}

// run tells the shell what to do, and passes the streams on until the command ends.
func (s *session) run(ctx context.Context, password string, command []string) error {
	if err := s.conn.WriteMessage(websocket.TextMessage, []byte(password)); err != nil {
		return err
	}
	input := s.attach.Stdin() != nil
	if err := s.write([]byte(typed)); err != nil {
		return err
	}
	if err := s.await(ctx, readyMark); err != nil {
		return err
	}
	if err := s.write(append(octal([]byte(script(command, s.attach.TTY(), input))), '\n')); err != nil {
		return err
	}
	if err := s.await(ctx, beginMark); err != nil {
		return err
	}
	if input {
		go s.send()
	}
	return s.receive(ctx)
}

func (s *session) write(data []byte) error {
	return s.conn.WriteMessage(websocket.BinaryMessage, data)
}

// await reads until the line of a mark, and drops what is before it: prompts, and the echo of what was typed.
func (s *session) await(ctx context.Context, mark string) error {
	if err := s.conn.SetReadDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	for {
		if at := bytes.Index(s.held, []byte(mark)); at >= 0 {
			if end := bytes.IndexByte(s.held[at:], '\n'); end >= 0 {
				s.held = s.held[at+end+1:]
				return s.conn.SetReadDeadline(time.Time{})
			}
		}
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errdefs.InvalidInput("the command did not begin: it needs " + shell + " in the image, as ACI runs one program and tells no exit code")
		}
		s.held = append(s.held, data...)
	}
}

// send passes the input on: to a terminal as it is, with the key that ends an input there, and else in lines for the shell.
func (s *session) send() {
	in, tty := s.attach.Stdin(), s.attach.TTY()
	buffer := make([]byte, 8<<10)
	for {
		n, err := in.Read(buffer)
		data := buffer[:n]
		if !tty {
			data = octal(data)
		}
		if n > 0 && s.write(data) != nil {
			return
		}
		if err != nil {
			end := []byte{'\n'}
			if tty {
				end = []byte{4}
			}
			_ = s.write(end) // the session may have ended
			return
		}
	}
}

// receive passes the output on until the shell says how the command ended.
func (s *session) receive(ctx context.Context) error {
	for {
		at := bytes.Index(s.held, []byte(exitMark))
		if at < 0 {
			keep := beginning(s.held)
			if err := s.put(s.held[:len(s.held)-keep]); err != nil {
				return err
			}
			s.held = append([]byte(nil), s.held[len(s.held)-keep:]...)
		} else if end := bytes.IndexByte(s.held[at:], '\n'); end >= 0 {
			if err := s.put(s.held[:at]); err != nil {
				return err
			}
			code, err := strconv.Atoi(strings.TrimSpace(string(s.held[at+len(exitMark) : at+end])))
			if err != nil {
				return fmt.Errorf("the exit code is not understood: %w", err)
			}
			if code != 0 {
				return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
			}
			return nil
		}
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			_ = s.put(s.held)
			return errdefs.InvalidInput("the session ended before the command said how it ended: the container may have ended")
		}
		s.held = append(s.held, data...)
	}
}

// beginning is how many bytes at the end of data may be the beginning of the mark.
func beginning(data []byte) int {
	for n := min(len(exitMark)-1, len(data)); n > 0; n-- {
		if bytes.HasSuffix(data, []byte(exitMark[:n])) {
			return n
		}
	}
	return 0
}

func (s *session) put(data []byte) error {
	if w := s.attach.Stdout(); w != nil && len(data) > 0 {
		_, err := w.Write(data)
		return err
	}
	return nil
}
