// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // of the handshake of RFC 6455
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

// caller is the caller of a command.
type caller struct {
	in     io.Reader
	out    bytes.Buffer
	errs   *bytes.Buffer // nil for a caller without a separate error output
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
func (c *caller) Stderr() io.WriteCloser {
	if c.errs == nil {
		return nil
	}
	return open{c.errs}
}

// TTY implements api.AttachIO.
func (c *caller) TTY() bool { return c.tty }

// Resize implements api.AttachIO.
func (c *caller) Resize() <-chan api.TermSize { return c.resize }

// words returns a command with the given number of bytes in JSON.
func words(bytes int) (command []string) {
	for left := bytes - 1; left > 0; { // in JSON, each word also has quotes and a comma or a bracket
		n := min(left, 200)
		if left-n > 0 && left-n < 4 {
			n -= 4
		}
		command = append(command, strings.Repeat("x", n-3))
		left -= n
	}
	return command
}

// TestWordsOfECI checks that a command that ECI would not accept is refused with a remedy.
func TestWordsOfECI(t *testing.T) {
	long := strings.Repeat("x", longestWord+1)
	many := strings.Split(strings.Repeat("a ", mostWords), " ")
	text := func(c *caller, shell bool, command []string) (string, error) {
		s := newSession(c)
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
		{"2,048 bytes", false, false, words(2048), true},
		{"2,049 bytes", false, false, words(2049), false},
		{"signs are not longer", false, false, []string{strings.Repeat("&", 250), strings.Repeat("<", 250)}, true},
	} {
		if _, err := text(&caller{tty: c.tty}, c.shell, c.command); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	got, err := text(&caller{tty: true}, true, []string{"sh"})
	if err != nil || !strings.Contains(got, "stty rows 50 cols 132") {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestNoShellIsNotRemembered checks that a missing shell is not remembered, because the container may not have
// been ready.
func TestNoShellIsNotRemembered(t *testing.T) {
	ready := false
	r := &region{t: t, says: map[string]func(url.Values) any{"ExecContainerCommand": func(f url.Values) any {
		if !ready {
			return 400
		}
		return object{"SyncResponse": f.Get("Command")}
	}}}
	d := &driver{client: r.client()}
	for _, want := range []bool{false, true, true} {
		if got, err := d.hasShell(t.Context(), "eci-1", "a", "run"); got != want || err != nil {
			t.Errorf("got %t, %v, want %t", got, err, want)
		}
		ready = true
	}
	if len(r.asked) != 2 {
		t.Errorf("asked %d times", len(r.asked))
	}
}

// message is a message of a session.
type message struct {
	kind int
	data string
}

// TestSessionsWithAndWithoutChannels checks that the first message shows whether messages have channels, and
// that input is sent in the same form.
func TestSessionsWithAndWithoutChannels(t *testing.T) {
	const binary, text = websocket.BinaryMessage, websocket.TextMessage
	for name, c := range map[string]struct {
		says      []message
		gets      string // the input, as the service gets it
		out, errs string
		code      int // -1: ECI reports no code
	}{
		"channels":                {[]message{{binary, "\x01out"}, {binary, "\x02err"}, {binary, "\x043"}}, "\x00typed", "out", "err", 3},
		"errors come first":       {[]message{{binary, "\x02err"}, {binary, "\x01\x01out"}, {binary, "\x040"}}, "\x00typed", "\x01out", "err", 0},
		"an end that is not told": {[]message{{binary, "\x01out"}, {binary, "\x04?"}}, "\x00typed", "out", "", -1},
		"text among them":         {[]message{{binary, "\x01out"}, {text, "\x01more"}}, "\x00typed", "out\x01more", "", -1},
		"no channels":             {[]message{{binary, "out"}, {binary, "\x01more"}}, "typed", "out\x01more", "", -1},
		"text alone":              {[]message{{text, "\x01out"}, {binary, "\x02"}}, "typed", "\x01out\x02", "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
				if err != nil {
					return
				}
				defer conn.Close()
				for i, m := range c.says {
					if err := conn.WriteMessage(m.kind, []byte(m.data)); err != nil {
						return
					}
					if i == 0 {
						_, data, _ := conn.ReadMessage()
						got <- string(data)
					}
				}
			}))
			defer server.Close()
			conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), strings.Replace(server.URL, "http", "ws", 1), nil)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			defer conn.Close()
			who := &caller{in: strings.NewReader("typed"), errs: &bytes.Buffer{}}
			s := newSession(who)
			s.conn = websession.Keep(t.Context(), conn)
			go s.send(t.Context())
			err = s.receive(t.Context())
			code := 0
			var exit utilexec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitStatus()
			} else if err != nil {
				code = -1
			}
			if in := <-got; in != c.gets || who.out.String() != c.out || who.errs.String() != c.errs || code != c.code {
				t.Errorf("the service got %q, the caller %q and %q with %d (%v), want %q, %q and %q with %d", in, &who.out, who.errs, code, err, c.gets, c.out, c.errs, c.code)
			}
		})
	}
}

// TestSessionThatWaitsForInput checks that a silent session counts as one with channels until its first message
// corrects that.
func TestSessionThatWaitsForInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFraming()
		if err := f.wait(t.Context()); err != nil || !f.hasChannels() {
			t.Errorf("got channels %t, %v", f.hasChannels(), err)
		}
		if channel, data := f.open(websocket.BinaryMessage, []byte("plain")); channel != channelOutput || string(data) != "plain" || f.hasChannels() {
			t.Errorf("got %d, %q, channels %t", channel, data, f.hasChannels())
		}
	})
}

func TestEndsOfSessions(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "137\n": 137, `{"status":"Success"}`: 0, `{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`: 7,
		"": -1, "gone": -1, `{"status":"Failure"}`: -1, `{"status":"Failure","details":{}}`: -1,
	} {
		code, ok := readExit([]byte(text))
		if !ok {
			code = -1
		}
		if code != want {
			t.Errorf("%q: got %d, want %d", text, code, want)
		}
	}
}

// TestSessionThatIsSilent checks that a session whose keep-alive messages get no answer ends.
func TestSessionThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		go func() { // a handshake only
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
		s := newSession(&caller{})
		s.conn = websession.Keep(t.Context(), conn)
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
