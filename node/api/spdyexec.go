// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/moby/spdystream/spdy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	httpspdy "k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// serveSPDY runs a session over SPDY. For each connection, the library's server uses 700 KiB to compress answers that are always the same,
// and queues up to 250 frames of the client. This server uses only the memory of a watchedConn.
func serveSPDY(w http.ResponseWriter, req *http.Request, s session, timeouts streamTimeouts, taken func() *execStreams) {
	protocol, err := httpstream.Handshake(req, w, remotecommand.SupportedStreamingProtocols)
	if err != nil {
		return // the client has received the reason
	}
	w.Header().Add(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	w.Header().Add(httpstream.HeaderUpgrade, httpspdy.HeaderSpdy31)
	w.WriteHeader(http.StatusSwitchingProtocols)
	hijacked, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return // the upgradeWriter records the failure
	}
	conn := hijacked.(*watchedConn)
	streams := taken()
	streams.join(conn)
	ctx := req.Context()
	if !streams.wait(ctx, timeouts.creation) {
		return
	}
	defer conn.Close()
	defer closeWhenIdle(conn, timeouts.idle)()
	status := streams.writer(remotecommand.StreamTypeError)
	err = s.do(ctx, streams.reader(conn), orNil(streams.writer(remotecommand.StreamTypeStdout)), orNil(streams.writer(remotecommand.StreamTypeStderr)), streams.sizes)
	if err := writeStatus(status, protocol, err); err != nil {
		log.G(ctx).WithError(err).Debug("client left before it got the exit status")
	}
	for _, kind := range []string{remotecommand.StreamTypeStdin, remotecommand.StreamTypeStdout, remotecommand.StreamTypeStderr, remotecommand.StreamTypeResize, remotecommand.StreamTypeError} {
		if stream := streams.writer(kind); stream != nil {
			_ = stream.Close()
		}
	}
}

func orNil(w *spdyWriter) io.WriteCloser {
	if w == nil {
		return nil
	}
	return w
}

// writeStatus tells a client how its session ended: in JSON from v4 on, and with the text of the error before
// v4.
func writeStatus(to *spdyWriter, protocol string, err error) error {
	if to == nil {
		return nil
	}
	status := sessionStatus(err)
	if protocol == remotecommand.StreamProtocolV4Name {
		data, err := json.Marshal(status)
		if err != nil {
			return err
		}
		_, err = to.Write(data)
		return err
	}
	if status.Status == metav1.StatusSuccess {
		return nil
	}
	_, err = io.WriteString(to, status.Message)
	return err
}

// closeWhenIdle closes the connection after the idle time without data. The returned stop cancels this.
func closeWhenIdle(conn *watchedConn, idle time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() {
		for left := idle; left > 0; left = idle - conn.record.quiet() {
			if within(left, ctx.Done()) {
				return
			}
		}
		conn.record.silent.Store(true)
		conn.close()
	})
	return func() { cancel(); watch.Wait() }
}

// execStreams has the streams that a client of exec or attach opens over SPDY. Its frameLimiter reports the
// streams to it.
type execStreams struct {
	expected int
	sizes    chan remotecommand.TerminalSize // the latest size; never closed: the reader of the sizes ends with the session
	size     sizeScanner

	mu     sync.Mutex
	conn   *watchedConn
	ids    map[string]spdy.StreamId // guarded by mu; keyed by type
	count  int                      // guarded by mu; of the opened streams, of every type
	unsaid []byte                   // guarded by mu; replies to send when conn is set
	ready  chan struct{}            // closed when all streams exist
}

func newExecStreams(expected int) *execStreams {
	return &execStreams{expected: expected, sizes: make(chan remotecommand.TerminalSize, 1), ids: map[string]spdy.StreamId{}, ready: make(chan struct{})}
}

// join sets the connection for replies: the first streams may arrive before the connection is known.
func (e *execStreams) join(conn *watchedConn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conn = conn
	e.reply(nil)
}

// reply sends a frame, or queues it until the connection is known. The caller holds mu.
func (e *execStreams) reply(frame []byte) {
	if e.unsaid = append(e.unsaid, frame...); e.conn != nil && len(e.unsaid) > 0 {
		_, _ = e.conn.Write(e.unsaid) // the connection reports a failure
		e.unsaid = nil
	}
}

// opened records a stream and replies to it.
func (e *execStreams) opened(id spdy.StreamId, headers http.Header) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reply(synReply(id, e.count == 0))
	e.ids[headers.Get(remotecommand.StreamType)] = id
	if e.count++; e.count == e.expected {
		close(e.ready)
	}
}

// pinged answers a ping of the client.
func (e *execStreams) pinged(id uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reply(binary.BigEndian.AppendUint32([]byte{0x80, spdy.Version, 0, byte(spdy.TypePing), 0, 0, 0, 4}, id))
}

// data returns the part of content that the session reads as input.
func (e *execStreams) data(id spdy.StreamId, content []byte) ([]byte, error) {
	switch id {
	case e.id(remotecommand.StreamTypeStdin):
		return content, nil
	case e.id(remotecommand.StreamTypeResize):
		return nil, e.size.scan(content, func(text []byte) {
			var size remotecommand.TerminalSize
			if json.Unmarshal(text, &size) != nil {
				return
			}
			select {
			case <-e.sizes:
			default:
			}
			e.sizes <- size
		})
	}
	return nil, nil // the other streams have no reader
}

func (e *execStreams) isInput(id spdy.StreamId) bool {
	return id == e.id(remotecommand.StreamTypeStdin)
}

// id returns the ID of the stream of a type, or 0 without such a stream.
func (e *execStreams) id(kind string) spdy.StreamId {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[kind]
}

func (e *execStreams) wait(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-e.ready:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (e *execStreams) reader(conn *watchedConn) io.Reader {
	if e.id(remotecommand.StreamTypeStdin) == 0 {
		return nil
	}
	return conn
}

func (e *execStreams) writer(kind string) *spdyWriter {
	id := e.id(kind)
	if id == 0 {
		return nil
	}
	return &spdyWriter{conn: e.conn, id: id}
}

// spdyWriter is the node's side of a stream.
type spdyWriter struct {
	conn *watchedConn
	id   spdy.StreamId
}

func (w *spdyWriter) Write(p []byte) (int, error) {
	if err := w.frame(0, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the node's side of the stream.
func (w *spdyWriter) Close() error { return w.frame(spdy.DataFlagFin, nil) }

func (w *spdyWriter) frame(flags spdy.DataFlags, content []byte) error {
	frame := make([]byte, frameHeaderSize, frameHeaderSize+len(content))
	binary.BigEndian.PutUint32(frame, uint32(w.id))
	binary.BigEndian.PutUint32(frame[4:], uint32(flags)<<24|uint32(len(content)))
	_, err := w.conn.Write(append(frame, content...))
	return err
}

// replies returns two frames for stream 1: the first SYN_REPLY of a connection, and the frame for all later replies. Their compressed
// header blocks are empty, and later blocks refer only to the first one.
var replies = sync.OnceValue(func() (frames [2][]byte) {
	var out bytes.Buffer
	framer, err := spdy.NewFramer(&out, &out)
	if err != nil {
		panic(err) // the dictionary of the compressor is a constant
	}
	for i := range frames {
		out.Reset()
		if err := framer.WriteFrame(&spdy.SynReplyFrame{StreamId: 1}); err != nil {
			panic(fmt.Sprintf("a frame without headers cannot be written: %v", err))
		}
		frames[i] = bytes.Clone(out.Bytes())
	}
	return frames
})

func synReply(id spdy.StreamId, first bool) []byte {
	frame := bytes.Clone(replies()[1])
	if first {
		frame = bytes.Clone(replies()[0])
	}
	binary.BigEndian.PutUint32(frame[frameHeaderSize:], uint32(id))
	return frame
}
