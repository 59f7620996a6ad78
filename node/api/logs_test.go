// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

const logsPath = "/containerLogs/default/web/app"

func plainLog(text string) api.ContainerLogsHandlerFunc {
	return func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

func TestLogErrorsBeforeFirstByte(t *testing.T) {
	for name, tc := range map[string]struct {
		open api.ContainerLogsHandlerFunc
		code int
	}{
		"not found":     {failing(errdefs.NotFound("gone")), http.StatusNotFound},
		"wrapped":       {failing(fmt.Errorf("x: %w", errdefs.NotFound("gone"))), http.StatusNotFound},
		"invalid input": {failing(errdefs.InvalidInput("bad")), http.StatusBadRequest},
		"other":         {failing(errBackend), http.StatusInternalServerError},
		"nothing":       {failing(nil), http.StatusInternalServerError},
		"panic": {func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
			panic("canary")
		}, http.StatusInternalServerError},
		"first read": {func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
			return io.NopCloser(brokenReader{errdefs.NotFound("rotated away")}), nil
		}, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, api.PodHandlerConfig{GetContainerLogs: tc.open})
			code, header, body := s.do(t, http.MethodGet, logsPath)
			if code != tc.code || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") || strings.Contains(body, "canary") {
				t.Errorf("got %d %s %q, want %d in plain text", code, header.Get("Content-Type"), body, tc.code)
			}
		})
	}
}

func failing(err error) api.ContainerLogsHandlerFunc {
	return func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
		return nil, err
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

// The client must not take a part of a log for the whole.
func TestLogErrorInTheMiddleCutsTheAnswer(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{GetContainerLogs: func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("begin\n"), brokenReader{errBackend})), nil
	}})
	var logged recorder
	h := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.ServeHTTP(w, req.WithContext(log.WithLogger(req.Context(), &logged)))
	})
	resp, err := http.Get(s.URL + logsPath + "?timestamps=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK || string(body) != "begin\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d %q, %v, want the beginning and an unexpected end", resp.StatusCode, body, err)
	}
	if lines := logged.lines(); len(lines) != 1 || !strings.Contains(lines[0], errBackend.Error()) || strings.Contains(lines[0], "timestamps") {
		t.Errorf("logged %q, want the error once and no query", lines)
	}
}

func TestStopOfServerCutsTheLog(t *testing.T) {
	provider, written := io.Pipe()
	s, stop := serveUntil(t, api.PodHandlerConfig{GetContainerLogs: func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
		return provider, nil
	}})
	go fmt.Fprintln(written, "begin")
	resp, err := http.Get(s.URL + logsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop()
	if body, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v, want an unexpected end", body, err)
	}
}

func TestFollowedLinesArriveAtOnce(t *testing.T) {
	provider, written := io.Pipe()
	s := serve(t, api.PodHandlerConfig{GetContainerLogs: func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
		return provider, nil
	}})
	go fmt.Fprintln(written, "first")
	resp, err := http.Get(s.URL + logsPath + "?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"first", "second"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v, want %q", lines.Text(), lines.Err(), want)
		}
		if want == "first" {
			go fmt.Fprintln(written, "second")
		}
	}
	written.Close()
	if lines.Scan() {
		t.Errorf("got %q after the end", lines.Text())
	}
}

// watchedLog is a log whose Read blocks until Close.
type watchedLog struct {
	closed chan struct{}
	once   sync.Once
}

func (l *watchedLog) Read([]byte) (int, error) {
	<-l.closed
	return 0, errors.New("read of a closed log")
}

func (l *watchedLog) Close() error {
	closedBefore := true
	l.once.Do(func() { close(l.closed); closedBefore = false })
	if closedBefore {
		panic("closed twice")
	}
	return nil
}

func TestLogIsClosedWhenClientLeaves(t *testing.T) {
	stream := &watchedLog{closed: make(chan struct{})}
	opened := make(chan context.Context, 1)
	s := serve(t, api.PodHandlerConfig{GetContainerLogs: func(ctx context.Context, _, _, _ string, _ api.ContainerLogOpts) (io.ReadCloser, error) {
		opened <- ctx
		return stream, nil
	}})
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+logsPath+"?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() {
		_, err := http.DefaultTransport.RoundTrip(req)
		left <- err
	}()
	providerCtx := within(t, opened, 20*time.Second, "opening of the log")
	leave()
	within(t, stream.closed, 20*time.Second, "closing of the log")
	within(t, providerCtx.Done(), 20*time.Second, "end of the provider's context")
	within(t, s.served, 20*time.Second, "end of the request")
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("client got %v", err)
	}
}

// recorder is a logger that stores warnings and errors.
type recorder struct {
	log.Logger
	mu  sync.Mutex
	all []string
	err error
}

func (r *recorder) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

func (r *recorder) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, text+" "+fmt.Sprint(r.err))
}

func (r *recorder) Warn(args ...any)                 { r.add(fmt.Sprint(args...)) }
func (r *recorder) Warnf(f string, args ...any)      { r.add(fmt.Sprintf(f, args...)) }
func (r *recorder) Error(args ...any)                { r.add(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any)     { r.add(fmt.Sprintf(f, args...)) }
func (r *recorder) Debug(...any)                     {}
func (r *recorder) WithError(err error) log.Logger   { r.err = err; return r }
func (r *recorder) WithField(string, any) log.Logger { return r }
func (r *recorder) WithFields(log.Fields) log.Logger { return r }
