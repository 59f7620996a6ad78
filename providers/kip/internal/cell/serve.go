// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/joblog"
)

// maxBundle limits the size of a request from the node: a pod may mount several Secrets of 1 MiB each.
const maxBundle = 64 << 20

// Serve answers the node at l, runs the pod, and ends the machine after too long without contact to a node. It returns when ctx ends, or after PowerOff.
func (a *Agent) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: a.newHandler(), ReadHeaderTimeout: callTime, ErrorLog: log.New(io.Discard, "", 0), // strangers could fill the console
		BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.roots, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				a.mu.Lock()
				defer a.mu.Unlock()
				return a.cert, nil
			},
		},
	}
	var running sync.WaitGroup
	running.Go(func() { a.runPod(ctx) })
	running.Go(func() {
		if why := a.awaitOrphan(ctx); why != "" {
			a.config.PowerOff(why)
		}
		cancel()
	})
	running.Go(func() {
		<-ctx.Done() // also ends all running requests
		last, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	err := server.ServeTLS(l, "", "")
	cancel()
	running.Wait()
	a.streams.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// closeTime is the time limit for requests to end.
const closeTime = 2 * time.Second

// runPod runs the machine's pod, and writes a final status if podjob could not.
func (a *Agent) runPod(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.given:
	}
	a.mu.Lock()
	over := a.state.Status != nil && a.state.Status.Ended
	a.mu.Unlock()
	if over {
		return
	}
	c := a.config.Job
	c.Host, c.LogDir, c.Wake, c.Pull, c.Listener = host{a}, filepath.Join(a.config.Dir, logDir), a.wake, a.pullImage, &listener{conns: a.conns, closed: make(chan struct{})}
	err := a.config.Run(ctx, c)
	a.mu.Lock()
	ended := a.state.Status != nil && a.state.Status.Ended
	a.mu.Unlock()
	if ended || ctx.Err() != nil {
		return
	}
	if err == nil {
		err = errors.New("it ended without a word")
	}
	s := podjob.Status{Ended: true, Pod: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "AgentFailed", Message: "the agent of the machine: " + err.Error()}}
	if err := (host{a}).WriteStatus(ctx, s); err != nil {
		fmt.Fprintf(os.Stderr, "write the end of the pod: %v\n", err)
	}
}

// newHandler answers the node. TLS admits only clients with a node certificate of the authority.
func (a *Agent) newHandler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			a.recordContact()
			if err := do(w, r); err != nil {
				writeRefusal(w, err)
			}
		})
	}
	handle("POST "+pathJoin, func(w http.ResponseWriter, r *http.Request) error {
		var req joinRequest
		if err := decodeRequest(r, &req); err != nil {
			return err
		}
		if a.config.SetClock != nil && !req.Now.IsZero() {
			a.config.SetClock(req.Now)
		}
		answer, err := a.requestCertificate(req.Nonce)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(answer)
	})
	handle("POST "+pathSigned, func(_ http.ResponseWriter, r *http.Request) error {
		var s signed
		if err := decodeRequest(r, &s); err != nil {
			return err
		}
		return a.takeCertificate(s.Certificate)
	})
	for method, do := range map[string]func(podjob.Bundle) error{http.MethodPost: a.takePod, http.MethodPut: a.renewPod} {
		handle(method+" "+pathPod, func(_ http.ResponseWriter, r *http.Request) error {
			var b podjob.Bundle
			if err := decodeRequest(r, &b); err != nil {
				return err
			}
			return do(b)
		})
	}
	handle("POST "+pathStop, func(_ http.ResponseWriter, r *http.Request) error {
		var o stopOrder
		if err := decodeRequest(r, &o); err != nil {
			return err
		}
		return a.orderStop(o.GraceSeconds)
	})
	handle("PUT "+pathServices, func(_ http.ResponseWriter, r *http.Request) error {
		var s Services
		if err := decodeRequest(r, &s); err != nil {
			return err
		}
		return a.setServices(s)
	})
	handle("GET "+pathLogs, a.writeLogs)
	handle("GET "+pathStats, func(w http.ResponseWriter, _ *http.Request) error {
		if a.config.Stats == nil {
			return errdefs.NotFound("the machine measures nothing")
		}
		s, err := a.config.Stats()
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(s)
	})
	handle("POST "+pathImage+"{id}", a.receiveImage)
	handle("POST "+pathStream, a.passStream)
	handle("POST "+pathWatch, a.sendStates)
	return mux
}

func decodeRequest(r *http.Request, v any) error {
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBundle)).Decode(v); err != nil {
		return errdefs.AsInvalidInput(fmt.Errorf("read the request: %w", err))
	}
	return nil
}

// writeRefusal answers with an error, if the answer has not begun yet.
func writeRefusal(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, ErrTaken):
		code = http.StatusConflict
	case errors.Is(err, ErrNoPod):
		code = http.StatusPreconditionRequired
	case errdefs.IsInvalidInput(err):
		code = http.StatusBadRequest
	case errdefs.IsNotFound(err):
		code = http.StatusNotFound
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(refusal{err.Error()}) // an error means that the client has disconnected
}

// podNow returns the pod and its last status.
func (a *Agent) podNow() (*corev1.Pod, corev1.PodStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Status == nil {
		return a.bundle.Pod, corev1.PodStatus{}
	}
	return a.bundle.Pod, a.state.Status.Pod
}

// writeLogs answers with the log of a container, also after the pod has ended.
func (a *Agent) writeLogs(w http.ResponseWriter, r *http.Request) error {
	var opts api.ContainerLogOpts
	if err := json.Unmarshal([]byte(r.FormValue("options")), &opts); err != nil {
		return errdefs.AsInvalidInput(fmt.Errorf("read the options: %w", err))
	}
	pod, _ := a.podNow()
	if pod == nil {
		return ErrNoPod
	}
	text, err := joblog.Open(r.Context(), filepath.Join(a.config.Dir, logDir), pod, r.FormValue("container"), opts, func() (corev1.PodStatus, bool) {
		_, s := a.podNow()
		return s, true
	})
	if err != nil {
		return err
	}
	defer text.Close()
	out := http.NewResponseController(w)
	if err := out.Flush(); err != nil { // the log may be silent for long
		return err
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := text.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return nil //nolint:nilerr // the reader has gone
			}
			_ = out.Flush()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the reader must not mistake the error for the end of the log
		}
	}
}

// upgradeConnection turns the connection of a request into a stream.
func upgradeConnection(w http.ResponseWriter) (net.Conn, *bufio.Reader, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgradeTo); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, rw.Reader, nil
}

// passStream hands a connection to the process that runs the pod.
func (a *Agent) passStream(w http.ResponseWriter, r *http.Request) error {
	a.mu.Lock()
	runs := a.state.Status != nil && !a.state.Status.Ended
	a.mu.Unlock()
	if !runs {
		return errdefs.InvalidInput("the pod does not run")
	}
	conn, read, err := upgradeConnection(w)
	if err != nil {
		return nil //nolint:nilerr // the node has gone
	}
	select {
	case a.conns <- &buffered{conn, read}:
	case <-r.Context().Done():
		_ = conn.Close()
	case <-time.After(callTime): // the pod has ended in the meantime
		_ = conn.Close()
	}
	return nil
}

// buffered is a connection with bytes in a buffer.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

// Read implements net.Conn.
func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// sendStates sends the state at each change until the connection ends. Each byte from the node counts as contact.
func (a *Agent) sendStates(w http.ResponseWriter, r *http.Request) error {
	conn, read, err := upgradeConnection(w)
	if err != nil {
		return nil //nolint:nilerr // the node has gone
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a.streams.Add(1)
	defer a.streams.Done()
	beats := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		for {
			if _, err := read.ReadByte(); err != nil {
				return
			}
			a.recordContact()
			select {
			case beats <- struct{}{}:
			default:
			}
		}
	}()
	defer func() {
		_ = conn.Close()
		<-ended
	}()
	var changed <-chan struct{}
	for {
		a.mu.Lock()
		line, err := json.Marshal(a.state)
		next := a.changed
		a.mu.Unlock()
		if err != nil {
			return nil //nolint:nilerr // it is made of strings
		}
		if changed != next {
			changed = next
		} else {
			line = nil
		}
		_ = conn.SetWriteDeadline(time.Now().Add(beatTime))
		if _, err := conn.Write(append(line, '\n')); err != nil {
			return nil //nolint:nilerr // the node has gone
		}
		select {
		case <-changed:
		case <-beats:
		case <-ctx.Done():
			return nil
		}
	}
}
