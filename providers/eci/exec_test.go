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
	"os/exec"
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

// TestScriptInShells runs the scripts in the shells of this machine, as ECI would: with what is sent as input. ECI makes one of both outputs, in
// any order, so all of the command's must come before the mark in one of them.
func TestScriptInShells(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	found := 0
	for _, shell := range []string{"sh", "dash", "bash", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		found++
		for name, c := range map[string]struct {
			command []string
			in      *string
			out     string
			code    int
		}{
			"words":        {[]string{"printf", "%s|", "a b", "it's", "$HOME", `\n`, "two\nlines", "", "*"}, nil, "a b|it's|$HOME|\\n|two\nlines||*|", 0},
			"a code":       {[]string{"sh", "-c", "echo to err >&2; exit 3"}, nil, "to err\n", 3},
			"no program":   {[]string{"/nowhere/program"}, nil, "", 127},
			"every byte":   {[]string{"cat"}, new(string(every)), string(every), 0},
			"no input":     {[]string{"cat"}, new(""), "", 0},
			"a dot":        {[]string{"cat"}, new("."), ".", 0},
			"reads a part": {[]string{"head", "-c", "2"}, new("abcd"), "ab", 0},
			"long":         {[]string{"wc", "-c"}, new(strings.Repeat("all of this\n", 3000)), "36000\n", 0},
		} {
			t.Run(shell+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := &script{mark: "MARK"}
				var in bytes.Buffer
				in.Write(s.begin(c.command, c.in != nil))
				if c.in != nil {
					for rest := *c.in; rest != ""; { // in pieces, as a session does
						n := min(1000, len(rest))
						in.Write(s.line([]byte(rest[:n])))
						rest = rest[n:]
					}
					in.Write(s.end())
				}
				words := s.words(c.command, false, 0, 0)
				if shell == "busybox" {
					words = append([]string{"busybox"}, words...)
				} else {
					words[0] = path
				}
				cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
				cmd.Stdin, cmd.Dir = &in, t.TempDir()
				var other bytes.Buffer
				cmd.Stderr = &other
				said, err := cmd.Output()
				if err != nil || other.Len() > 0 {
					t.Fatalf("%v: %s, and in the other output: %s", err, said, &other)
				}
				var out bytes.Buffer
				m := &marked{mark: "MARK", next: &out}
				for len(said) > 0 && !m.ended { // in small pieces, so that the mark is cut
					n := min(3, len(said))
					if _, err := m.Write(said[:n]); err != nil {
						t.Fatal(err)
					}
					said = said[n:]
				}
				if got := out.String(); got != c.out && !(c.code == 127 && got != "") || !m.ended || m.code != c.code {
					t.Errorf("got %q with code %d, ended %t; want %q with %d", got, m.code, m.ended, c.out, c.code)
				}
			})
		}
	}
	if found == 0 {
		t.Skip("this machine has no shell")
	}
}

// TestWordsOfECI: what ECI does not take is refused with what to do.
func TestWordsOfECI(t *testing.T) {
	long := strings.Repeat("x", longestWord+1)
	many := strings.Split(strings.Repeat("a ", mostWords), " ")
	for _, c := range []struct {
		name    string
		s       *session
		command []string
		ok      bool
	}{
		{"a script has no limit", &session{attach: &caller{}, script: &script{mark: "m"}}, append(many, long), true},
		{"a terminal has", &session{attach: &caller{tty: true}, script: &script{mark: "m"}}, []string{long}, false},
		{"a terminal has a number", &session{attach: &caller{tty: true}, script: &script{mark: "m"}}, many, false},
		{"without a shell", &session{attach: &caller{}}, []string{long}, false},
	} {
		if _, err := c.s.words(c.command, 24, 80); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	got, err := (&session{attach: &caller{tty: true}, script: &script{mark: "m"}}).words([]string{"sh"}, 50, 132)
	if err != nil || !strings.Contains(got, "stty rows 50 cols 132") {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestSizeOfATerminal: the first size counts, and who sends more is not kept waiting.
func TestSizeOfATerminal(t *testing.T) {
	c := &caller{tty: true, resize: make(chan api.TermSize)}
	go func() { c.resize <- api.TermSize{Height: 50, Width: 132} }()
	s := &session{attach: c}
	if rows, columns := s.size(t.Context()); rows != 50 || columns != 132 {
		t.Errorf("got %d, %d", rows, columns)
	}
	sent := make(chan struct{})
	go func() {
		for range 3 {
			c.resize <- api.TermSize{}
		}
		close(c.resize)
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(10 * time.Second):
		t.Error("sizes are not read")
	}
}

// TestMarkOfAnotherCommand: what a command prints does not end it.
func TestMarkOfAnotherCommand(t *testing.T) {
	var out bytes.Buffer
	m := &marked{mark: "MARK", next: &out}
	for _, piece := range []string{"\nMARKED 3\n", "\n", "M", "A\n", "end\nMARK", " 4\n"} {
		if _, err := m.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "\nMARKED 3\n\nMA\nend" || m.code != 4 || !m.ended {
		t.Errorf("got %q with %d", got, m.code)
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
	p := &driver{client: r.client()}
	for _, want := range []bool{false, true, true} {
		if got, err := p.hasShell(t.Context(), "eci-1", "a", "run"); got != want || err != nil {
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
