// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // of the handshake of RFC 6455
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// caller is who asked for a command.
type caller struct {
	in     io.Reader
	out    bytes.Buffer
	tty    bool
	resize chan api.TermSize
}

type open struct{ io.Writer }

func (open) Close() error { return nil }

// Stdin implements api.AttachIO.
func (c *caller) Stdin() io.Reader { return c.in }

// Stdout implements api.AttachIO.
func (c *caller) Stdout() io.WriteCloser { return open{&c.out} }

// Stderr implements api.AttachIO.
func (c *caller) Stderr() io.WriteCloser { return nil }

// TTY implements api.AttachIO.
func (c *caller) TTY() bool { return c.tty }

// Resize implements api.AttachIO.
func (c *caller) Resize() <-chan api.TermSize { return c.resize }

// TestWordsOfECI: what ECI does not take is refused with what to do.
func TestWordsOfECI(t *testing.T) {
	long := strings.Repeat("x", longestWord+1)
	many := strings.Split(strings.Repeat("a ", mostWords), " ")
	words := func(c *caller, shell bool, command []string) (string, error) {
		s := &session{attach: c}
		if shell {
			s.useShell(command, 50, 132)
		}
		return s.words(command)
	}
	for _, c := range []struct {
		name       string
		tty, shell bool
		command    []string
		ok         bool
	}{
		{"a script has no limit", false, true, append(many, long), true},
		{"a terminal has", true, true, []string{long}, false},
		{"a terminal has a number", true, true, many, false},
		{"without a shell", false, false, []string{long}, false},
	} {
		if _, err := words(&caller{tty: c.tty}, c.shell, c.command); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	got, err := words(&caller{tty: true}, true, []string{"sh"})
	if err != nil || !strings.Contains(got, "stty rows 50 cols 132") {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestNoShellIsNotRemembered: the container may not have been ready.
func TestNoShellIsNotRemembered(t *testing.T) {
	ready := false
	r := &region{t: t, says: map[string]func(url.Values) any{"ExecContainerCommand": func(f url.Values) any {
		if !ready {
			return 400
		}
		return object{"SyncResponse": f.Get("Command")}
	}}}
	c, known := r.client(), shells{}
	for _, want := range []bool{false, true, true} {
		if got, err := known.has(t.Context(), c, "eci-1", "a", "run"); got != want || err != nil {
			t.Errorf("got %t, %v, want %t", got, err, want)
		}
		ready = true
	}
	if len(r.asked) != 2 {
		t.Errorf("asked %d times", len(r.asked))
	}
}

// TestSessionThatIsSilent ends: nobody answers what says that this side is there.
func TestSessionThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		go func() { // a handshake, and nothing more
			r := bufio.NewReader(there)
			q, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			sum := sha1.Sum([]byte(q.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as RFC 6455 has it
			_, _ = io.WriteString(there, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+
				base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n")
			_, _ = io.Copy(io.Discard, r)
		}()
		dialer := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
		conn, answer, err := dialer.DialContext(t.Context(), "ws://eci/", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		s := &session{attach: &caller{}, conn: conn}
		go s.beat(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.receive(t.Context()) }()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("it ended well")
			}
		case <-time.After(time.Hour):
			t.Error("it goes on after an hour")
			conn.Close()
		}
	})
}
