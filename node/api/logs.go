// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// ContainerLogsHandlerFunc opens the log of a container. The handler closes the stream when it has been sent or when the client goes away,
// even during a Read; ctx ends at the same time.
//
// The handler assumes that the content of the stream matches opts. As a safeguard against providers that ignore options, an answer longer
// than LimitBytes is cut. Without Follow, so is an answer with more lines than Tail, as long as these lines fit in 8 MiB.
//
// The kind of the error, see package errdefs, decides on the answer: 404 for not-found, 400 for invalid-input, else 500. An error of a
// later Read cuts the connection, so that the client does not take a partial log for the whole.
type ContainerLogsHandlerFunc func(ctx context.Context, namespace, podName, containerName string, opts ContainerLogOpts) (io.ReadCloser, error)

// HandleContainerLogs returns a handler that answers with the log that h opens. The route must have the
// variables namespace, pod and container, of gorilla/mux or of http.ServeMux. With a nil h the handler answers
// 501.
func HandleContainerLogs(h ContainerLogsHandlerFunc) http.HandlerFunc {
	if h == nil {
		return NotImplemented
	}
	return answerErrors(func(w http.ResponseWriter, req *http.Request) error {
		t, err := containerTarget(req)
		if err != nil {
			return err
		}
		now := time.Now()
		opts, nothing, err := parseLogOpts(req.URL.Query(), now)
		if err != nil {
			return err
		}
		if nothing {
			setLogHeader(w)
			return nil
		}
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		stream, err := openLog(ctx, h, t, opts)
		if err != nil {
			return err
		}
		defer stream.Close()
		return sendLog(ctx, w, cutLog(stream, opts), t)
	})
}

// openLog opens a stream, which is closed at the end of ctx even during a Read.
func openLog(ctx context.Context, h ContainerLogsHandlerFunc, t target, opts ContainerLogOpts) (io.ReadCloser, error) {
	stream, err := h(ctx, t.Namespace, t.Pod, t.Container, opts)
	if err != nil {
		return nil, fmt.Errorf("get logs of %s: %w", t, err)
	}
	if stream == nil {
		return nil, fmt.Errorf("get logs of %s: the provider returned neither a stream nor an error", t)
	}
	closer := &closeOnce{ReadCloser: stream}
	context.AfterFunc(ctx, func() { _ = recoverPanic(ctx, closer.Close) })
	return closer, nil
}

// cutLog returns the stream truncated at the limits of opts.
func cutLog(stream io.Reader, opts ContainerLogOpts) io.Reader {
	if opts.Tail > 0 && !opts.Follow {
		stream = &tailReader{source: stream, lines: opts.Tail}
	}
	if opts.LimitBytes > 0 {
		stream = io.LimitReader(stream, int64(opts.LimitBytes))
	}
	return stream
}

// closeOnce closes a stream only once: the handler and the end of the context both call Close, and a provider's stream may not allow a
// second Close.
type closeOnce struct {
	io.ReadCloser
	once sync.Once
	err  error
}

func (c *closeOnce) Close() error {
	c.once.Do(func() { c.err = c.ReadCloser.Close() })
	return c.err
}

func setLogHeader(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
}

// sendLog sends body and flushes each piece. It logs a failure after the first piece, and returns errCut for it.
func sendLog(ctx context.Context, w http.ResponseWriter, body io.Reader, t target) error {
	flush := http.NewResponseController(w).Flush
	chunk := make([]byte, 32<<10)
	started := false
	for {
		n := 0
		err := recoverPanic(ctx, func() (err error) {
			n, err = body.Read(chunk)
			return err
		})
		if ctx.Err() != nil { // the client left, or the server stops
			return errCut
		}
		if !started && (n > 0 || errors.Is(err, io.EOF)) {
			setLogHeader(w)
			started = true
		}
		if n > 0 {
			if _, err := w.Write(chunk[:n]); err != nil {
				return nil // the client has disconnected
			}
			if err := flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return nil
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case !started:
			return fmt.Errorf("read logs of %s: %w", t, err)
		default:
			log.G(ctx).WithError(err).Errorf("read logs of %s: %v", t, errCut)
			return errCut
		}
	}
}
