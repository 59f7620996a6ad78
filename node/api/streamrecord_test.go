// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	slogadapter "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// record is the log record of a stream.
type record struct {
	User, Verb, Protocol, Pod, PodUID, Container, Duration, Outcome string
	Groups                                                          []string
	BytesIn, BytesOut                                               int64
	ExitCode, Connections                                           *int
}

// recorded serves cfg to a user, and returns a function that waits for the next record. Each function of wrap
// may replace the writer of a request.
func recorded(t *testing.T, cfg api.PodHandlerConfig, wrap ...func(http.ResponseWriter, *http.Request) http.ResponseWriter) (s server, next func() record, said *buffer) {
	t.Helper()
	said = &buffer{}
	logger := slogadapter.FromSlog(slog.New(slog.NewJSONHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug})))
	h := api.InstrumentHandler(api.PodHandler(cfg, true))
	s = serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for _, wrapped := range wrap {
			w = wrapped(w, req)
		}
		ctx := api.WithCaller(req.Context(), api.Caller{Name: "jane", Groups: []string{"ops", "dev"}})
		h.ServeHTTP(w, req.WithContext(log.WithLogger(ctx, logger)))
	}))
	seen := 0
	next = func() record {
		t.Helper()
		within(t, s.served, 10*time.Second, "end of the request")
		lines := slices.DeleteFunc(strings.Split(said.String(), "\n"), func(line string) bool { return !strings.Contains(line, "Stream has ended") })
		if len(lines) != seen+1 {
			t.Fatalf("the log has %d records, want %d: %s", len(lines), seen+1, said.String())
		}
		seen++
		var r record
		if err := json.Unmarshal([]byte(lines[seen-1]), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	return s, next, said
}

// onePod returns the pod of the node in these tests.
func onePod(namespace, name string) (*corev1.Pod, error) {
	if namespace != "default" || name != "web" {
		return nil, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u-1"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
	}, nil
}

func TestSecurityA11EachStreamLeavesARecord(t *testing.T) {
	const secret = "canary"
	var outcome error
	run := func(_ context.Context, _, _, _ string, attach api.AttachIO) error {
		typed, err := io.ReadAll(attach.Stdin())
		if err != nil || string(typed) != secret {
			return errors.Join(err, fmt.Errorf("typed %q", typed))
		}
		fmt.Fprint(attach.Stdout(), secret)
		return outcome
	}
	s, next, said := recorded(t, api.PodHandlerConfig{
		GetPod: onePod, AttachToContainer: run,
		RunInContainer: func(ctx context.Context, ns, pod, container string, _ []string, attach api.AttachIO) error {
			return run(ctx, ns, pod, container, attach)
		},
	})
	overTransports(t, func(t *testing.T, stream streamFunc) {
		if strings.Contains(t.Name(), "v4") {
			t.Skip("v4.channel.k8s.io has no half-close over WebSocket")
		}
		for _, tc := range []struct {
			err     error
			outcome string
			exit    int // below 0: no exit code
		}{
			{nil, "completed", 0},
			{fmt.Errorf("wrapped: %w", utilexec.CodeExitError{Err: errors.New(secret), Code: 42}), "exited", 42},
			{errdefs.NotFound(secret), "error: not found", -1},
			{errors.New(secret), "error", -1},
		} {
			for verb, path := range map[string]string{"exec": "/exec/default/web/app?command=" + secret, "attach": "/attach/default/web/u-1/app?x=y"} {
				outcome = tc.err
				err := stream(t.Context(), s, path+"&input=1&output=1", remotecommand.StreamOptions{
					Stdin: strings.NewReader(secret), Stdout: io.Discard,
				})
				if (err == nil) != (tc.err == nil) {
					t.Errorf("%s: the client got %v", verb, err)
				}
				got := next()
				exit := -1
				if got.ExitCode != nil {
					exit = *got.ExitCode
				}
				if got.User != "jane" || !slices.Equal(got.Groups, []string{"ops", "dev"}) || got.Verb != verb ||
					!strings.HasPrefix(t.Name(), t.Name()[:strings.LastIndex(t.Name(), "/")+1]+got.Protocol) ||
					got.Pod != "default/web" || got.PodUID != "u-1" || got.Container != "app" ||
					got.BytesIn < int64(len(secret)) || got.BytesOut < int64(len(secret)) || exit != tc.exit || got.Outcome != tc.outcome {
					t.Errorf("%s that ends with %v: got %+v with exit code %d, want outcome %s with exit code %d", verb, tc.err, got, exit, tc.outcome, tc.exit)
				}
				if d, err := time.ParseDuration(got.Duration); err != nil || d <= 0 {
					t.Errorf("%s: duration is %q", verb, got.Duration)
				}
			}
		}
	})
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "Stream has ended") && strings.Contains(line, secret) {
			t.Errorf("a record has what was said: %s", line)
		}
	}
}

func TestSecurityA11RecordsSayHowStreamsEnd(t *testing.T) {
	started := make(chan struct{}, 1)
	s, next, _ := recorded(t, api.PodHandlerConfig{
		GetPod: onePod, PortForward: greet,
		RunInContainer: func(ctx context.Context, _, _, _ string, cmd []string, _ api.AttachIO) error {
			if cmd[0] == "panic" {
				panic("canary")
			}
			started <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		},
		StreamLimits: api.NewStreamLimits(1, 0),
	})
	overTransports(t, func(t *testing.T, stream streamFunc) {
		run := func(ctx context.Context, command string) {
			_ = stream(ctx, s, "/exec/default/web/app?output=1&command="+command, remotecommand.StreamOptions{Stdout: io.Discard})
		}
		run(t.Context(), "panic")
		if got := next().Outcome; got != "provider panicked" {
			t.Errorf("after a panic: got outcome %q", got)
		}

		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go run(ctx, "sleep")
		within(t, started, 20*time.Second, "start of the session")
		run(t.Context(), "sleep")
		if got := next(); got.Outcome != "too many" || got.User != "jane" {
			t.Errorf("beyond the limit: got %+v", got)
		}
		leave()
		if got := next().Outcome; got != "client left" {
			t.Errorf("after the client left: got outcome %q", got)
		}
	})
	s.get(t, execPath+"&output=1")
	if got := next().Outcome; got != "refused" {
		t.Errorf("without an upgrade: got outcome %q", got)
	}
}

func TestSecurityA11RecordsTellTimeouts(t *testing.T) {
	wait := func(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
		<-ctx.Done()
		return ctx.Err()
	}
	s, next, _ := recorded(t, api.PodHandlerConfig{RunInContainer: wait, StreamIdleTimeout: 10 * short, StreamCreationTimeout: time.Hour})
	overTransports(t, func(t *testing.T, stream streamFunc) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() { _ = stream(ctx, s, execPath+"&output=1", remotecommand.StreamOptions{Stdout: io.Discard}) }()
		if got := next().Outcome; got != "idle" {
			t.Errorf("after silence: got outcome %q", got)
		}
	})
	s, next, _ = recorded(t, api.PodHandlerConfig{RunInContainer: wait, StreamCreationTimeout: short})
	dial(t, s, execPath+"&output=1", "v4.channel.k8s.io")
	if got := next().Outcome; got != "no streams" {
		t.Errorf("without streams: got outcome %q", got)
	}
}

func TestSecurityA11PortForwardLeavesARecord(t *testing.T) {
	s, next, _ := recorded(t, api.PodHandlerConfig{GetPod: onePod, PortForward: greet})
	check := func(protocol string, connections int) {
		t.Helper()
		got := next()
		if got.Verb != "portForward" || got.Protocol != protocol || got.PodUID != "u-1" || got.Outcome != "completed" ||
			got.Connections == nil || *got.Connections != connections || got.BytesIn == 0 || got.BytesOut == 0 || got.ExitCode != nil {
			t.Errorf("got %+v, want %d connections over %s", got, connections, protocol)
		}
	}
	for over := range forwardDialers {
		f := forward(t, s, over, "/portForward/default/web", "0:80")
		for range 2 {
			conn := f.dial(t, 0)
			if _, err := io.WriteString(conn, "hello"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(conn); err != nil {
				t.Fatal(err)
			}
		}
		close(f.stop)
		if err := within(t, f.done, 20*time.Second, "end of the client"); err != nil {
			t.Errorf("%s: the client ended with %v", over, err)
		}
		check(over, 2)
	}
	dialer := websocket.Dialer{Subprotocols: []string{"v4.channel.k8s.io"}}
	conn, resp, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+"/portForward/default/web?port=80", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer conn.Close()
	if err := conn.WriteMessage(websocket.BinaryMessage, []byte("\x00hello")); err != nil {
		t.Fatal(err)
	}
	check("WebSocket", 1)
}
