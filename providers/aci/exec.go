// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// mark begins what the wrapper prints after the command. The exit code and a newline follow it.
const mark = "\x1evk-exit "

// wrapper is a script that runs its arguments and says how they ended: ACI tells no exit codes.
const wrapper = `"$@"; printf '\036vk-exit %d\n' $?`

// quote makes text one word of a command.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// commandLine is the one text that ACI takes as a command.
func commandLine(command []string) string {
	words := []string{"/bin/sh", "-c", quote(wrapper), "sh"}
	for _, word := range command {
		words = append(words, quote(word))
	}
	return strings.Join(words, " ")
}

// RunInContainer runs a command by a websocket. Both outputs are one stream, and the exit code comes from a shell in the image: without one
// the command does not run.
func (p *provider) RunInContainer(ctx context.Context, namespace, pod, name string, command []string, attach api.AttachIO) error {
	i, err := p.running(ctx, namespace, pod, name)
	if err != nil {
		return err
	}
	request := aci.ContainerExecRequest{Command: new(commandLine(command))}
	if attach.TTY() { // which has this size until it ends: ACI has no request that changes it
		size := firstSize(ctx, attach.Resize())
		request.TerminalSize = &aci.ContainerExecRequestTerminalSize{Rows: new(int32(size.Height)), Cols: new(int32(size.Width))}
	}
	answer, err := p.client.exec(ctx, value(i.group.Name), name, request)
	if err != nil {
		return err
	}
	dialer := websocket.Dialer{Proxy: p.proxy, TLSClientConfig: p.tls, HandshakeTimeout: callTimeout}
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
	if err := conn.WriteMessage(websocket.TextMessage, []byte(value(answer.Password))); err != nil {
		return fmt.Errorf("exec in pod %s/%s: %w", namespace, pod, err)
	}
	go send(conn, attach)
	return receive(ctx, conn, attach)
}

// sizePatience is how long the first size of a terminal is waited for.
const sizePatience = 250 * time.Millisecond

func firstSize(ctx context.Context, sizes <-chan api.TermSize) api.TermSize {
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
	return api.TermSize{Width: 80, Height: 24}
}

// quietly is an error of the dialer without addresses.
func quietly(err error) error {
	if errors.Is(err, websocket.ErrBadHandshake) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%T", err)
}

// send passes the input on. ACI has no end of input: with a terminal it is the character that a terminal has for it.
func send(conn *websocket.Conn, attach api.AttachIO) {
	in := attach.Stdin()
	if in == nil {
		return
	}
	buffer := make([]byte, 8<<10)
	for {
		n, err := in.Read(buffer)
		if n > 0 && conn.WriteMessage(websocket.BinaryMessage, buffer[:n]) != nil {
			return
		}
		if err != nil {
			if attach.TTY() {
				_ = conn.WriteMessage(websocket.BinaryMessage, []byte{4}) // the session may have ended
			}
			return
		}
	}
}

// receive passes the output on until the wrapper says how the command ended.
func receive(ctx context.Context, conn *websocket.Conn, attach api.AttachIO) error {
	var held []byte // the end of what came, which may be the beginning of the mark
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			_ = put(attach, held)
			return errdefs.InvalidInput("the command ended, and ACI tells no exit code: the image may have no /bin/sh, or the container has ended")
		}
		held = append(held, data...)
		at := bytes.Index(held, []byte(mark))
		if at < 0 {
			keep := beginning(held)
			if err := put(attach, held[:len(held)-keep]); err != nil {
				return err
			}
			held = append([]byte(nil), held[len(held)-keep:]...)
			continue
		}
		if end := bytes.IndexByte(held[at:], '\n'); end >= 0 {
			if err := put(attach, held[:at]); err != nil {
				return err
			}
			code, err := strconv.Atoi(strings.TrimSpace(string(held[at+len(mark) : at+end])))
			if err != nil {
				return fmt.Errorf("the exit code is not understood: %w", err)
			}
			if code != 0 {
				return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
			}
			return nil
		}
	}
}

// beginning is how many bytes at the end of data may be the beginning of the mark.
func beginning(data []byte) int {
	for n := min(len(mark)-1, len(data)); n > 0; n-- {
		if bytes.HasSuffix(data, []byte(mark[:n])) {
			return n
		}
	}
	return 0
}

func put(attach api.AttachIO, data []byte) error {
	if w := attach.Stdout(); w != nil && len(data) > 0 {
		_, err := w.Write(data)
		return err
	}
	return nil
}
