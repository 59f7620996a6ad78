// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// Console is the SSH server for commands in containers. The user is stack.instance.container.client, and the
// password is the client secret.
type Console struct {
	server *Server
	key    ssh.Signer

	mu        sync.Mutex
	passwords []string // guarded by mu; all passwords from clients
}

// NewConsole returns a console with a key of its own.
func NewConsole(s *Server) *Console {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // the machine has no random numbers
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		panic(err) // the key was just generated, and is valid
	}
	return &Console{server: s, key: key}
}

// HostKey is the key of the console, as in a file authorized_keys.
func (c *Console) HostKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c.key.PublicKey())))
}

// Passwords returns the passwords of all logins at the console.
func (c *Console) Passwords() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.passwords...)
}

// Serve accepts logins until the listener is closed.
func (c *Console) Serve(ctx context.Context, l net.Listener) {
	config := &ssh.ServerConfig{PasswordCallback: func(meta ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		c.mu.Lock()
		c.passwords = append(c.passwords, string(password))
		c.mu.Unlock()
		group, container, ok := c.server.reached(meta.User())
		if !ok || string(password) != c.server.ClientSecret {
			return nil, errors.New("access denied")
		}
		return &ssh.Permissions{Extensions: map[string]string{"group": group, "container": container}}, nil
	}}
	config.AddHostKey(c.key)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go c.serve(ctx, conn, config)
	}
}

// reached returns the workload and the container of a user name.
func (s *Server) reached(user string) (group, container string, ok bool) {
	parts := strings.Split(user, ".")
	if len(parts) != 4 || parts[0] != s.Stack || parts[3] != s.ClientID {
		return "", "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workloads {
		if w.consoles && s.nameOf(w) == parts[1] {
			return w.id, parts[2], true
		}
	}
	return "", "", false
}

func (c *Console) serve(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	through, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		if asked.ChannelType() != "session" {
			_ = asked.Reject(ssh.UnknownChannelType, "there are sessions alone")
			continue
		}
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		go c.session(ctx, channel, requests, through.Permissions.Extensions)
	}
}

// session runs the one command of a session.
func (c *Console) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request, of map[string]string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sizes := make(chan api.TermSize, 16)
	to := &emulator.Streams{In: channel, Out: channel, Err: channel.Stderr(), Sizes: sizes}
	for r := range requests {
		var ok bool
		switch r.Type {
		case "pty-req":
			var pty struct {
				Term                         string
				Columns, Rows, Width, Height uint32
				Modes                        string
			}
			ok = ssh.Unmarshal(r.Payload, &pty) == nil
			to.Terminal = true
			sizes <- api.TermSize{Width: uint16(pty.Columns), Height: uint16(pty.Rows)}
		case "window-change":
			var size struct{ Columns, Rows, Width, Height uint32 }
			if ok = ssh.Unmarshal(r.Payload, &size) == nil; ok {
				select {
				case sizes <- api.TermSize{Width: uint16(size.Columns), Height: uint16(size.Rows)}:
				default:
				}
			}
		case "exec":
			var command struct{ Text string }
			ok = ssh.Unmarshal(r.Payload, &command) == nil
			go func() {
				c.run(ctx, channel, words(command.Text), to, of)
				channel.Close()
			}()
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}

// run runs a command, and reports its exit code.
func (c *Console) run(ctx context.Context, channel ssh.Channel, command []string, to *emulator.Streams, of map[string]string) {
	defer c.server.opened("sessions", of["group"])()
	runner, ns, name := c.server.Fleet.Runner(of["group"])
	err := runner.RunInContainer(ctx, ns, name, of["container"], command, to)
	code := uint32(0)
	var exit utilexec.ExitError
	switch {
	case errors.As(err, &exit):
		code = uint32(exit.ExitStatus())
	case err != nil:
		_, _ = io.WriteString(channel.Stderr(), err.Error()+"\n")
		code = 255
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
}

// words splits a command as a shell does: at spaces that are not quoted.
func words(text string) (all []string) {
	var word strings.Builder
	quoted, begun, escaped := false, false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && !quoted:
			escaped, begun = true, true
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		all = append(all, word.String())
	}
	return all
}
