// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

const (
	// mostWords and longestWord are what ECI takes of a command.
	mostWords, longestWord = 20, 256
	// dialTimeout bounds the opening of a session: its address is good for 30 s.
	dialTimeout = 30 * time.Second
	// execBeat is how often a session says that it is there.
	execBeat = 10 * time.Second
	// execSilence is how long a session may say nothing, not even that it is there.
	execSilence = 3 * execBeat
	// maxMessage is how many bytes a message of a session has at most.
	maxMessage = 16 << 20
	// sizePatience is how long the size of a terminal is waited for.
	sizePatience = time.Second
)

// RunInContainer runs a command by a websocket. ECI tells neither the exit code nor the end of the input, so a shell of the image does; see
// script. Without one the output is all that there is, and the end of the command is an error.
func (p *provider) RunInContainer(ctx context.Context, namespace, name, container string, command []string, attach api.AttachIO) error {
	pod, i, err := p.find(ctx, namespace, name)
	if err != nil {
		return err
	}
	status := statusOf(pod, container)
	if status == nil {
		return errdefs.NotFoundf("pod %s/%s has no container %s", namespace, name, container)
	}
	if status.State.Running == nil {
		return errdefs.InvalidInputf("pod %s/%s: container %s does not run", namespace, name, container)
	}
	fail := func(err error) error { return fmt.Errorf("exec in pod %s/%s: %w", namespace, name, err) }
	s := session{attach: attach, container: container}
	shell, err := p.hasShell(ctx, i.status.ContainerGroupID, container, status.ContainerID)
	if err != nil {
		return fail(err)
	}
	if shell {
		s.script = &script{mark: rand.Text()}
	}
	rows, columns := s.size(ctx)
	words, err := s.words(command, rows, columns)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := p.open(ctx, execRequest{
		ContainerGroupID: i.status.ContainerGroupID, ContainerName: container, Command: words, TTY: attach.TTY(), Stdin: new(s.hasInput()),
	})
	if err != nil {
		return fail(err)
	}
	s.conn = conn
	defer conn.Close()
	conn.SetReadLimit(maxMessage)
	conn.SetPongHandler(func(string) error { return s.heard() })
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	go s.send(command) // ends with the input, or with the first write after the end of conn
	go s.beat(ctx)
	if err := s.receive(ctx); err != nil {
		return s.asExit(fail, err)
	}
	return nil
}

// asExit leaves an exit code as it is.
func (s *session) asExit(fail func(error) error, err error) error {
	var exit utilexec.ExitError
	if errors.As(err, &exit) {
		return err
	}
	return fail(err)
}

// open asks for a session, and opens it. Its address is a key to the container: it is in no error.
func (p *provider) open(ctx context.Context, request execRequest) (*websocket.Conn, error) {
	var answer execAnswer
	if err := p.client.call(ctx, "ExecContainerCommand", request, &answer); err != nil {
		return nil, err
	}
	u, err := url.Parse(answer.WebSocketURI)
	if err != nil || u.Scheme != "wss" || u.Host == "" {
		return nil, errors.New("ExecContainerCommand: ECI gives no address of a session that begins with wss://")
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialTimeout, TLSClientConfig: &tls.Config{RootCAs: p.roots, MinVersion: tls.VersionTLS12}}
	conn, refusal, err := dialer.DialContext(ctx, u.String(), nil)
	if refusal != nil && refusal.Body != nil {
		refusal.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("open the session at %s: %w", u.Host, err)
	}
	return conn, nil
}
