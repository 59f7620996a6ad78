// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"k8s.io/streaming/pkg/httpstream"
)

// upgradeWriter returns a watchedConn when the streaming library takes over the connection. It deliberately has no Unwrap method: the
// library would unwrap it and hijack the connection itself.
type upgradeWriter struct {
	http.ResponseWriter
	gone   func(why error)
	record *streamRecord
	// frames returns the frameChecker for a client. Over SPDY it depends on the negotiated protocol.
	frames func(protocol string) frameChecker
	// protocol replaces the library's choice in the response to the client, unless it is empty.
	protocol string

	mu     sync.Mutex
	closed bool
	conn   *watchedConn
	lost   error // why the connection could not be taken over
}

// WriteHeader implements http.ResponseWriter.
func (w *upgradeWriter) WriteHeader(code int) {
	if code == http.StatusSwitchingProtocols && w.protocol != "" {
		w.Header().Set(httpstream.HeaderProtocolVersion, w.protocol)
	}
	w.ResponseWriter.WriteHeader(code)
}

// Hijack implements http.Hijacker.
func (w *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		conn, rw, err = w.watch(conn, rw)
	}
	if err != nil {
		w.lost = fmt.Errorf("take over the connection: %w", err)
	}
	return conn, rw, w.lost
}

// watch returns the watched connection for the library. The caller holds mu.
func (w *upgradeWriter) watch(conn net.Conn, rw *bufio.ReadWriter) (net.Conn, *bufio.ReadWriter, error) {
	if w.closed {
		conn.Close()
		return nil, nil, net.ErrClosed
	}
	frames := w.frames(w.Header().Get(httpstream.HeaderProtocolVersion))
	ahead, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	// Not rw.Reader itself: at the end of the connection it would cancel the request's context before the cause is set.
	from := io.MultiReader(bytes.NewReader(bytes.Clone(ahead)), conn)
	w.conn = watchConn(conn, from, w.gone, frames, w.record)
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

// taken reports whether the connection was taken over.
func (w *upgradeWriter) taken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn != nil
}

// whyLost returns why the handler could not take the connection over, if it tried.
func (w *upgradeWriter) whyLost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// end calls how, which is watchedConn.close or watchedConn.abort, if the connection was taken over.
func (w *upgradeWriter) end(how func(*watchedConn)) {
	w.mu.Lock()
	w.closed = true
	conn := w.conn
	w.mu.Unlock()
	if conn != nil {
		how(conn)
	}
}

// wait returns when the connection, if it was taken over, is no longer read. Close the connection first.
func (w *upgradeWriter) wait() {
	w.mu.Lock()
	conn := w.conn
	w.mu.Unlock()
	if conn != nil {
		<-conn.done
	}
}
