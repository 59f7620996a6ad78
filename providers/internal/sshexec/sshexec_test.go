// SPDX-License-Identifier: Apache-2.0

package sshexec

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// console is an SSH server. A command exits with the number at its end, and prints its text and its input; "sizes" prints two sizes of its terminal,
// and "hang" does not end.
type console struct {
	key      ssh.Signer
	listener net.Listener
	shown    chan string // passwords
	hangs    chan struct{}
}

func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func startConsole(t *testing.T) *console {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := &console{key: newKey(t), listener: l, shown: make(chan string, 16), hangs: make(chan struct{}, 1)}
	config := &ssh.ServerConfig{PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		c.shown <- string(password)
		if string(password) != "right" {
			return nil, errors.New("no")
		}
		return nil, nil
	}}
	config.AddHostKey(c.key)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn, config)
		}
	}()
	return c
}

func (c *console) server(key ssh.Signer) Server {
	return Server{Address: c.listener.Addr().String(), HostKey: string(ssh.MarshalAuthorizedKey(key.PublicKey()))}
}

func (c *console) serve(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		go c.session(channel, requests)
	}
}

func (c *console) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	sizes := make(chan string, 16)
	for r := range requests {
		_ = r.Reply(true, nil)
		switch r.Type {
		case "pty-req":
			var pty struct {
				Term                         string
				Columns, Rows, Width, Height uint32
				Modes                        string
			}
			_ = ssh.Unmarshal(r.Payload, &pty)
			sizes <- fmt.Sprint(pty.Columns, "x", pty.Rows, " ")
		case "window-change":
			var size struct{ Columns, Rows, Width, Height uint32 }
			_ = ssh.Unmarshal(r.Payload, &size)
			sizes <- fmt.Sprint(size.Columns, "x", size.Rows, " ")
		case "exec":
			var command struct{ Text string }
			_ = ssh.Unmarshal(r.Payload, &command)
			go c.run(channel, command.Text, sizes)
		}
	}
}

func (c *console) run(channel ssh.Channel, text string, sizes <-chan string) {
	defer channel.Close()
	code := uint32(0)
	switch text {
	case "'hang'":
		c.hangs <- struct{}{}
		_, _ = io.Copy(io.Discard, channel)
		return
	case "'sizes'":
		_, _ = io.WriteString(channel, <-sizes+<-sizes)
	default:
		_, _ = io.WriteString(channel, text+"\n")
		_, _ = io.WriteString(channel.Stderr(), "errors\n")
		_, _ = io.Copy(channel, channel)
		_, _ = fmt.Sscan(strings.Trim(text[strings.LastIndex(text, " ")+1:], "'"), &code)
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
}

// caller is the caller of a command.
type caller struct {
	in       io.Reader
	out, err bytes.Buffer
	tty      bool
	sizes    chan api.TermSize
}

type open struct{ io.Writer }

func (open) Close() error { return nil }

// Stdin implements api.AttachIO.
func (c *caller) Stdin() io.Reader { return c.in }

// Stdout implements api.AttachIO.
func (c *caller) Stdout() io.WriteCloser { return open{&c.out} }

// Stderr implements api.AttachIO.
func (c *caller) Stderr() io.WriteCloser { return open{&c.err} }

// TTY implements api.AttachIO.
func (c *caller) TTY() bool { return c.tty }

// Resize implements api.AttachIO.
func (c *caller) Resize() <-chan api.TermSize { return c.sizes }

// TestAnotherKeyIsShownNothing checks that a server with another key gets no password, and does not learn that
// there is one.
func TestAnotherKeyIsShownNothing(t *testing.T) {
	c := startConsole(t)
	_, err := c.server(newKey(t)).Dial(t.Context(), "u", ssh.Password("right"))
	if err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "its key is "+ssh.FingerprintSHA256(c.key.PublicKey())) {
		t.Errorf("got %v", err)
	}
	if len(c.shown) != 0 {
		t.Error("it was shown the password")
	}
	if _, err := c.server(c.key).Dial(t.Context(), "u"); !errors.Is(err, ErrRefused) || len(c.shown) != 0 {
		t.Errorf("without a password: got %v, and %d were shown", err, len(c.shown))
	}
	if _, err := c.server(c.key).Dial(t.Context(), "u", ssh.Password("wrong")); !errors.Is(err, ErrRefused) || len(c.shown) != 1 {
		t.Errorf("a wrong password: got %v, and %d were shown", err, len(c.shown))
	}
}

func dial(t *testing.T) (*console, *ssh.Client) {
	t.Helper()
	c := startConsole(t)
	client, err := c.server(c.key).Dial(t.Context(), "u", ssh.Password("right"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return c, client
}

// TestCommands checks that words arrive unchanged, that both outputs are separate, and that the input with its
// end and the exit code arrive.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		command []string
		in, out string
		code    int
	}{
		{[]string{"echo", "a"}, "", "'echo' 'a'\n", 0},
		{[]string{"sh", "-c", "echo $HOME; it's", "3"}, "", `'sh' '-c' 'echo $HOME; it'\''s' '3'` + "\n", 3},
		{[]string{"cat", ""}, "typed", "'cat' ''\ntyped", 0},
		{[]string{"false", "255"}, "", "'false' '255'\n", 255},
	} {
		_, client := dial(t)
		who := &caller{}
		if c.in != "" {
			who.in = strings.NewReader(c.in)
		}
		err := Run(t.Context(), client, c.command, who)
		var exit utilexec.ExitError
		code := 0
		if errors.As(err, &exit) {
			code = exit.ExitStatus()
		} else if err != nil {
			t.Errorf("%q: %v", c.command, err)
		}
		if code != c.code || who.out.String() != c.out || who.err.String() != "errors\n" {
			t.Errorf("%q: %d, %q, %q; want %d, %q", c.command, code, who.out.String(), who.err.String(), c.code, c.out)
		}
	}
}

// TestShellsGetTheWordsAsTheyAre checks that a shell interprets no word, and that the first word is the name of a program.
func TestShellsGetTheWordsAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	programs := []string{"A=b", "if", "time", "%1", "{", "!", "~", "=ls", "#x", "plain"}
	for _, name := range programs {
		script := "#!/bin/sh\nprintf '%s|' \"${0##*/}\" \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ran := false
	for _, shell := range [][]string{{"sh"}, {"bash"}, {"dash"}, {"busybox", "sh"}, {"zsh"}} {
		path, err := exec.LookPath(shell[0])
		if err != nil {
			continue
		}
		ran = true
		for _, name := range programs {
			if name == "time" && shell[0] == "busybox" {
				continue // a shell with this applet prefers it to PATH
			}
			words := []string{name, "", "A=~", "=ls", "~", "#x", "%1", "it's", "$HOME `x`", "a\nb", "{a,b}", "*", `\`, "-n", "C=d", "if"}
			cmd := exec.CommandContext(t.Context(), path, append(slices.Clone(shell[1:]), "-c", Quote(words))...)
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=/home"}
			out, err := cmd.CombinedOutput()
			if want := strings.Join(words, "|") + "|"; err != nil || string(out) != want {
				t.Errorf("%s: %q: got %q, %v", shell[0], words, out, err)
			}
		}
	}
	if !ran {
		t.Skip("there is no shell")
	}
}

// TestTerminalHasTheSizesOfTheCaller checks the first size and all later ones.
func TestTerminalHasTheSizesOfTheCaller(t *testing.T) {
	_, client := dial(t)
	who := &caller{tty: true, sizes: make(chan api.TermSize, 2)}
	who.sizes <- api.TermSize{Width: 100, Height: 30}
	who.sizes <- api.TermSize{Width: 120, Height: 40}
	if err := Run(t.Context(), client, []string{"sizes"}, who); err != nil || who.out.String() != "100x30 120x40 " {
		t.Errorf("got %v, %q", err, who.out.String())
	}
}

// TestEndOfTheContextEndsTheCommand checks that a command that would continue ends with its context.
func TestEndOfTheContextEndsTheCommand(t *testing.T) {
	c, client := dial(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	in, _ := io.Pipe()
	go func() { ended <- Run(ctx, client, []string{"hang"}, &caller{in: in}) }()
	<-c.hangs
	cancel()
	if err := <-ended; err == nil {
		t.Error("a command that was cut has succeeded")
	}
}

// TestServersAreChecked checks servers in configurations.
func TestServersAreChecked(t *testing.T) {
	good := Server{"ssh.example.com:22", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"}
	if err := good.Check(); err != nil || !good.IsSet() || (Server{}).IsSet() {
		t.Error(err)
	}
	for _, s := range []Server{{good.Address, ""}, {good.Address, "SHA256:abc"}, {"ssh.example.com", good.HostKey}, {"", good.HostKey}} {
		if s.Check() == nil {
			t.Errorf("%+v is well", s)
		}
	}
}
