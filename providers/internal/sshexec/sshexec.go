// SPDX-License-Identifier: Apache-2.0

// Package sshexec runs commands at an SSH server, with the behaviour of the kubelet API, for services whose containers are reached by SSH.
//
// The guarantee: nothing is sent to a server whose host key differs from the configured key. The caller gets the exit code of the command, and both
// outputs separately. Everything started by Run ends with ctx, except for a read of the caller's input, which ends with the input.
//
// Note: SSH sends a command as one string, and the shell of the server splits the text into words. Every word is quoted.
package sshexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// handshakeTime bounds the connection and the handshake.
const handshakeTime = 30 * time.Second

// Server is an SSH server in a configuration.
type Server struct {
	// Address is its host and port.
	Address string `json:"address,omitempty"`
	// HostKey is the required public key of the server, as in a file authorized_keys: ssh-ed25519 AAAA…
	HostKey string `json:"hostKey,omitempty"`
}

// IsSet reports whether there is a server.
func (s Server) IsSet() bool { return s != Server{} }

// Check refuses a server without an address or a key.
func (s Server) Check() error {
	if _, _, err := net.SplitHostPort(s.Address); err != nil {
		return fmt.Errorf("address: %q: want a host with its port, such as ssh.example.com:22", s.Address)
	}
	_, err := s.hostKey()
	return err
}

func (s Server) hostKey() (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.HostKey))
	if err != nil {
		return nil, fmt.Errorf("hostKey: %q: want the public key of the server, such as ssh-ed25519 AAAA…", s.HostKey)
	}
	return key, nil
}

// ErrRefused is the error of Dial if a server with the right key rejects the user.
var ErrRefused = errors.New("it does not let the user in")

// Dial connects to the server. Without authentication methods, it only checks the host key, and returns ErrRefused if the key is right.
func (s Server) Dial(ctx context.Context, user string, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	pinned, err := s.hostKey()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	known := false
	through, channels, requests, err := ssh.NewClientConn(conn, s.Address, &ssh.ClientConfig{
		User: user, Auth: auth, HostKeyAlgorithms: keyAlgorithms(pinned),
		HostKeyCallback: func(name string, remote net.Addr, key ssh.PublicKey) error {
			if err := ssh.FixedHostKey(pinned)(name, remote, key); err != nil {
				return fmt.Errorf("its key is %s, want %s", ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(pinned))
			}
			known = true
			return nil
		},
	})
	switch {
	case err == nil:
		return ssh.NewClient(through, channels, requests), nil
	case known && ctx.Err() == nil:
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	conn.Close()
	return nil, fmt.Errorf("SSH server %s: %w", s.Address, err)
}

// keyAlgorithms returns the algorithms of a key, so that a server with several keys presents this one.
func keyAlgorithms(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// Run runs a command for a caller. The error of a failed command has the exit code.
func Run(ctx context.Context, client *ssh.Client, command []string, attach api.AttachIO) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	session, err := client.NewSession()
	if err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	defer session.Close()
	if err := connectStreams(ctx, session, attach); err != nil {
		return fmt.Errorf("prepare the session: %w", err)
	}
	err = session.Run(Quote(command))
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", exit.ExitStatus()), Code: exit.ExitStatus()}
	}
	return err
}

// connectStreams connects a session with its caller.
func connectStreams(ctx context.Context, session *ssh.Session, attach api.AttachIO) error {
	if out := attach.Stdout(); out != nil {
		session.Stdout = out
	}
	if out := attach.Stderr(); out != nil && !attach.TTY() {
		session.Stderr = out
	}
	if attach.TTY() {
		sizes := attach.Resize()
		size := firstSize(ctx, sizes)
		if err := session.RequestPty("xterm", int(size.Height), int(size.Width), ssh.TerminalModes{}); err != nil {
			return err
		}
		if sizes != nil {
			go passSizes(ctx, session, sizes)
		}
	}
	if attach.Stdin() == nil {
		return nil
	}
	in, err := session.StdinPipe() // with session.Stdin, the session would wait for the end of the reader
	if err != nil {
		return err
	}
	go func() { // ends with the input
		_, _ = io.Copy(in, attach.Stdin()) // the exit of the command shows the failure
		in.Close()
	}()
	return nil
}

// firstSize waits a moment for the size of the terminal.
func firstSize(ctx context.Context, sizes <-chan api.TermSize) api.TermSize {
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case size, more := <-sizes:
		if more {
			return size
		}
	case <-patience.C:
	case <-ctx.Done():
	}
	return api.TermSize{Width: 80, Height: 24}
}

// passSizes forwards terminal sizes until the channel closes, the session ends, or ctx ends.
func passSizes(ctx context.Context, session *ssh.Session, sizes <-chan api.TermSize) {
	for {
		select {
		case size, more := <-sizes:
			if !more || session.WindowChange(int(size.Height), int(size.Width)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// Quote converts a command to one string for the shell of a server. It quotes each word, because a shell interprets an unquoted first word such as
// A=b, if or %1, and shells differ in the other words that they expand.
func Quote(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	text := strings.Join(words, " ")
	if strings.HasPrefix(text, "'%") { // bash treats such a word as a job, even in quotes
		return "exec " + text
	}
	return text
}
