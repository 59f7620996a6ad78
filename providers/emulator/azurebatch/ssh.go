// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Shell is a Runner with machines that users can log in to by SSH.
type Shell interface {
	// Command returns the command of a user's shell for a text. Without admin, the user may not become root.
	Command(node, text string, admin bool) *exec.Cmd
}

// ReplaceHostKeys gives the SSH servers of all machines other keys than in their files, as if another machine
// answered at their addresses.
func (s *Server) ReplaceHostKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		n.key = newHostKey()
	}
}

// ForgetUsers removes the users of all machines, as a new installation does.
func (s *Server) ForgetUsers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		clear(n.users)
	}
}

// serveSSH admits users to a machine until the server ends. s.mu is held.
func (s *Server) serveSSH(n *node) error {
	l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	n.listener = l
	s.wg.Go(func() {
		defer context.AfterFunc(s.ctx, func() { l.Close() })()
		s.letIn(n, l)
	})
	return nil
}

// letIn accepts logins of users at a machine until the listener is closed.
func (s *Server) letIn(n *node, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		lost := n.state != "idle" && n.state != "running"
		config := &ssh.ServerConfig{PublicKeyCallback: func(of ssh.ConnMetadata, shown ssh.PublicKey) (*ssh.Permissions, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			u := n.users[of.User()]
			if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(u.key)); err != nil || string(key.Marshal()) != string(shown.Marshal()) {
				return nil, errors.New("access denied")
			}
			s.logins++
			return &ssh.Permissions{Extensions: map[string]string{"admin": map[bool]string{true: "yes"}[u.admin]}}, nil
		}}
		config.AddHostKey(n.key)
		s.mu.Unlock()
		if lost {
			conn.Close()
			continue
		}
		s.wg.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(s.ctx, func() { conn.Close() })()
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
				s.wg.Go(func() { s.session(n, channel, requests, through.Permissions.Extensions["admin"] != "") })
			}
		})
	}
}

// session runs the command of a session. When its client goes, the input ends, but the command is not killed.
func (s *Server) session(n *node, channel ssh.Channel, requests <-chan *ssh.Request, admin bool) {
	defer channel.Close()
	shell, can := s.run.(Shell)
	for r := range requests {
		var command struct{ Text string }
		ok := can && r.Type == "exec" && ssh.Unmarshal(r.Payload, &command) == nil
		_ = r.Reply(ok, nil)
		if !ok {
			continue
		}
		go ssh.DiscardRequests(requests)
		cmd := shell.Command(n.id, command.Text, admin)
		cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		code := uint32(255)
		if err == nil {
			go func() {
				_, _ = io.Copy(in, channel)
				_ = in.Close()
			}()
			_ = cmd.Wait()                             // the exit code has the outcome
			code = uint32(cmd.ProcessState.ExitCode()) //nolint:gosec // exit codes of processes fit
		} else {
			_, _ = io.WriteString(channel.Stderr(), err.Error()+"\n")
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}

// Logins returns the number of logins of users with their own key.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// sudo is the program with which an administrator of a machine becomes root. The processes of the emulator are
// root already.
const sudo = "#!/bin/sh\n[ \"$1\" = -n ] && [ -n \"$ADMIN\" ] || { echo 'sudo: a password is required' >&2; exit 1; }\nshift\nexec \"$@\"\n"

// shellEnv is the environment of the shell of a user.
func shellEnv(bin string, admin bool) []string {
	return []string{"PATH=" + strings.Join([]string{bin, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, ":"), "ADMIN=" + map[bool]string{true: "yes"}[admin]}
}
