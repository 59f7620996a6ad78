// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/remotecommand"
	clientexec "k8s.io/client-go/util/exec"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

const execPath = "/exec/default/web/app?command=echo&command=a+b"

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func TestExecPassesTargetCommandAndStreams(t *testing.T) {
	overTransports(t, func(t *testing.T, stream streamFunc) {
		var got string
		s := serve(t, api.PodHandlerConfig{RunInContainer: func(_ context.Context, ns, pod, container string, cmd []string, attach api.AttachIO) error {
			got = fmt.Sprintf("%s %s %s %q tty=%t", ns, pod, container, cmd, attach.TTY())
			fmt.Fprint(attach.Stdout(), "to stdout")
			fmt.Fprint(attach.Stderr(), "to stderr")
			return nil
		}})
		var stdout, stderr buffer
		err := stream(t.Context(), s, execPath+"&output=1&error=1", remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
		if err != nil {
			t.Fatal(err)
		}
		if want := `default web app ["echo" "a b"] tty=false`; got != want {
			t.Errorf("provider got %s, want %s", got, want)
		}
		if stdout.String() != "to stdout" || stderr.String() != "to stderr" {
			t.Errorf("client got %q and %q", stdout.String(), stderr.String())
		}
	})
}

func TestUnrequestedStreamsAreNil(t *testing.T) {
	overTransports(t, func(t *testing.T, stream streamFunc) {
		s := serve(t, api.PodHandlerConfig{RunInContainer: func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
			if attach.Stdin() != nil || attach.Stderr() != nil || attach.Resize() != nil || attach.Stdout() == nil {
				t.Errorf("got stdin %v, stdout %v, stderr %v, resize %v, want stdout only", attach.Stdin(), attach.Stdout(), attach.Stderr(), attach.Resize())
			}
			return nil
		}})
		if err := stream(t.Context(), s, execPath+"&output=1", remotecommand.StreamOptions{Stdout: io.Discard}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestExitCodeReachesClient(t *testing.T) {
	exit := utilexec.CodeExitError{Err: fmt.Errorf("exited"), Code: 42}
	for name, result := range map[string]error{
		"direct":  exit,
		"wrapped": fmt.Errorf("run: %w", fmt.Errorf("in sandbox: %w", exit)),
	} {
		t.Run(name, func(t *testing.T) {
			overTransports(t, func(t *testing.T, stream streamFunc) {
				s := serve(t, api.PodHandlerConfig{
					RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error { return result },
					AttachToContainer: func(context.Context, string, string, string, api.AttachIO) error {
						return result
					},
				})
				for _, path := range []string{execPath + "&output=1", "/attach/default/web/app?output=1"} {
					err := stream(t.Context(), s, path, remotecommand.StreamOptions{Stdout: io.Discard})
					code, ok := err.(clientexec.CodeExitError)
					if !ok || code.Code != 42 {
						t.Errorf("%s: got %T %v, want exit code 42", path, err, err)
					}
				}
			})
		})
	}
}

func TestExitCodeZeroIsSuccess(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
		return utilexec.CodeExitError{Err: fmt.Errorf("exited"), Code: 0}
	}})
	overTransports(t, func(t *testing.T, stream streamFunc) {
		if err := stream(t.Context(), s, execPath+"&output=1", remotecommand.StreamOptions{Stdout: io.Discard}); err != nil {
			t.Errorf("got %v, want success", err)
		}
	})
}

func TestOtherErrorsReachClientWithText(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
		return errBackend
	}})
	overTransports(t, func(t *testing.T, stream streamFunc) {
		err := stream(t.Context(), s, execPath+"&output=1", remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), errBackend.Error()) {
			t.Errorf("got %v, want %v in it", err, errBackend)
		}
	})
}

// TestStdinEndsWhenClientHalfCloses: the client closes its end of stdin while the session goes on. The protocol
// v4 over WebSocket cannot transmit this.
func TestStdinEndsWhenClientHalfCloses(t *testing.T) {
	overTransports(t, func(t *testing.T, stream streamFunc) {
		if strings.Contains(t.Name(), "v4") {
			t.Skip("v4.channel.k8s.io has no half-close over WebSocket")
		}
		s := serve(t, api.PodHandlerConfig{RunInContainer: func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
			typed, err := io.ReadAll(attach.Stdin())
			fmt.Fprintf(attach.Stdout(), "read %d", len(typed))
			return err
		}})
		const size = 1 << 20
		var stdout buffer
		err := stream(t.Context(), s, execPath+"&input=1&output=1", remotecommand.StreamOptions{
			Stdin:  strings.NewReader(strings.Repeat("x", size)),
			Stdout: &stdout,
		})
		if want := fmt.Sprintf("read %d", size); err != nil || stdout.String() != want {
			t.Errorf("got %q, %v, want %q", stdout.String(), err, want)
		}
	})
}

// sizes is a queue of terminal sizes.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	if size, ok := <-s; ok {
		return &size
	}
	return nil
}

func TestResizeArrivesAndIsClosedAtTheEnd(t *testing.T) {
	overTransports(t, func(t *testing.T, stream streamFunc) {
		resize := make(chan (<-chan api.TermSize), 1)
		seen := make(chan api.TermSize, 1)
		s := serve(t, api.PodHandlerConfig{RunInContainer: func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
			if attach.Stderr() != nil {
				t.Error("a session with a terminal has a stderr")
			}
			resize <- attach.Resize()
			seen <- <-attach.Resize()
			return nil
		}})
		terminal := make(sizes, 1)
		defer close(terminal)
		terminal <- remotecommand.TerminalSize{Width: 120, Height: 40}
		err := stream(t.Context(), s, execPath+"&output=1&tty=1", remotecommand.StreamOptions{
			Stdout: io.Discard, Tty: true, TerminalSizeQueue: terminal,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := <-seen, (api.TermSize{Width: 120, Height: 40}); got != want {
			t.Errorf("got size %v, want %v", got, want)
		}
		within(t, s.served, 20*time.Second, "end of the request")
		for range <-resize {
		}
	})
}

// As with a kubelet, stderr is dropped for a terminal, not refused.
func TestTerminalDropsStderr(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
		if attach.Stderr() != nil || !attach.TTY() {
			t.Error("want a terminal and no stderr")
		}
		return nil
	}})
	executor, err := transports[1].new(s, execPath+"&output=1&error=1&tty=1")
	if err != nil {
		t.Fatal(err)
	}
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard, Tty: true}); err != nil {
		t.Fatal(err)
	}
}

func TestExecRefusesWhatCannotWork(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
		t.Error("provider was called")
		return nil
	}})
	long := strings.Repeat("x", 20<<10)
	for _, tc := range []struct{ name, path string }{
		{"no streams", "/exec/default/web/app?command=ls"},
		{"no command", "/exec/default/web/app?output=1"},
		{"no upgrade", execPath + "&output=1"},
		{"namespace", "/exec/De_fault/web/app?command=ls&output=1"},
		{"pod", "/exec/default/we%20b/app?command=ls&output=1"},
		{"dots", "/exec/default/%2e%2e/app?command=ls&output=1"},
		{"container", "/exec/default/web/App?command=ls&output=1"},
		{"long command", "/exec/default/web/app?output=1" + strings.Repeat("&command="+long, 7)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, header, body := s.do(t, http.MethodPost, tc.path)
			if code != http.StatusBadRequest || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
				t.Errorf("got %d %s %q, want 400 in plain text", code, header.Get("Content-Type"), body)
			}
		})
	}
}

// The response to a request without an upgrade must not repeat the headers of the request.
func TestRefusalDoesNotRepeatToken(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{
		RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error { return nil },
		PortForward:    func(context.Context, string, string, int32, io.ReadWriteCloser) error { return nil },
	})
	for _, path := range []string{execPath + "&output=1", "/portForward/default/web"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer canary")
		req.Header.Set("X-Stream-Protocol-Version", "v4.channel.k8s.io,portforward.k8s.io")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || strings.Contains(string(body), "canary") {
			t.Errorf("%s: got %d %q, want 400 without the token", path, resp.StatusCode, body)
		}
	}
}

// Programs mount the handlers themselves, with gorilla/mux or http.ServeMux.
func TestHandlersWorkOnServeMux(t *testing.T) {
	var got []string
	h := http.NewServeMux()
	h.Handle("GET /x/{namespace}/{pod}/{container}", api.HandleContainerExec(func(_ context.Context, ns, pod, container string, cmd []string, _ api.AttachIO) error {
		got = append([]string{ns, pod, container}, cmd...)
		return nil
	}))
	executor, err := transports[1].new(serveHandler(t, h), "/x/default/web/app?command=ls&stdout=true")
	if err != nil {
		t.Fatal(err)
	}
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"default", "web", "app", "ls"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
