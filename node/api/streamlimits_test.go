// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Sessions of all kinds and protocols count together: three in all, two of one user.
func TestSecurityE2SessionsAreLimited(t *testing.T) {
	started := make(chan struct{}, 10)
	wait := func(ctx context.Context, _, _, _ string, _ api.AttachIO) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	h := api.PodHandler(api.PodHandlerConfig{
		AttachToContainer: wait,
		RunInContainer: func(ctx context.Context, ns, pod, container string, _ []string, attach api.AttachIO) error {
			return wait(ctx, ns, pod, container, attach)
		},
		PortForward:  func(ctx context.Context, _, _ string, _ int32, _ io.ReadWriteCloser) error { return nil },
		StreamLimits: api.NewStreamLimits(3, 2),
	}, true)
	var user string
	s := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.ServeHTTP(w, req.WithContext(api.WithCaller(req.Context(), api.Caller{Name: user})))
	}))
	begin := func(transport int, path string) (leave context.CancelFunc, result <-chan error) {
		executor, err := transports[transport].new(s, path+"output=1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		t.Cleanup(leave)
		ended := make(chan error, 1)
		go func() { ended <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard}) }()
		return leave, ended
	}
	refused := func(who string) {
		t.Helper()
		user = who
		for _, path := range []string{"/exec/default/web/app?command=x&", "/attach/default/web/app?"} {
			_, ended := begin(0, path)
			if err := within(t, ended, 10*time.Second, "answer"); err == nil || !strings.Contains(err.Error(), "too many sessions") {
				t.Errorf("%s beyond the limit: got %v, want a refusal", path, err)
			}
			within(t, s.served, 10*time.Second, "end of the request")
		}
		for protocol, path := range map[string]string{
			"v4.channel.k8s.io": "/attach/default/web/app?output=1", "v5.channel.k8s.io": execPath + "&output=1",
			"base64.channel.k8s.io": "/portForward/default/web?port=80", "SPDY/3.1+portforward.k8s.io": "/portForward/default/web",
		} {
			_, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol}}).
				DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+path, nil)
			if err == nil || resp == nil || resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%s beyond the limit over %s: got %v, %v, want 429", path, protocol, resp, err)
			}
			within(t, s.served, 10*time.Second, "end of the request")
		}
	}

	user = "jane"
	leave, _ := begin(0, "/exec/default/web/app?command=x&")
	within(t, started, 10*time.Second, "start of a session")
	begin(1, "/attach/default/web/app?")
	within(t, started, 10*time.Second, "start of a session")
	refused("jane")
	user = "joe"
	begin(2, "/exec/default/web/app?command=x&")
	within(t, started, 10*time.Second, "start of a session")
	refused("joe")

	leave()
	within(t, s.served, 10*time.Second, "end of the request")
	begin(0, "/exec/default/web/app?command=x&")
	within(t, started, 10*time.Second, "start of a session after one has ended")
}

// TestSecurityE2ForwardedConnectionsAreLimited: one client forwards as many connections as allowed. A further
// connection is refused, and the others go on.
func TestSecurityE2ForwardedConnectionsAreLimited(t *testing.T) {
	const most = 500
	for over, dialer := range forwardDialers {
		t.Run(over, func(t *testing.T) {
			begun := make(chan struct{}, most+2)
			s := serve(t, api.PodHandlerConfig{PortForward: func(ctx context.Context, ns, pod string, port int32, stream io.ReadWriteCloser) error {
				begun <- struct{}{}
				return greet(ctx, ns, pod, port, stream)
			}})
			d, err := dialer(s, "/portForward/default/web")
			if err != nil {
				t.Fatal(err)
			}
			conn, _, err := d.Dial("portforward.k8s.io")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			first, _ := connect(t, conn, 0, 80)
			for id := 1; id < most; id++ {
				connect(t, conn, id, 80)
			}
			for range most { // connections start in any order, so one more could take the place of an earlier one
				within(t, begun, 30*time.Second, "start of a connection")
			}
			header := func(kind string) http.Header {
				return http.Header{"Port": {"80"}, "Requestid": {"more"}, "Streamtype": {kind}}
			}
			errors, err := conn.CreateStream(header("error"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = conn.CreateStream(header("data")) // an error if it is reset before the client knows that it exists
			if got, err := io.ReadAll(errors); !strings.Contains(string(got), "too many connections") {
				t.Errorf("connection %d: got %q, %v, want a refusal", most+1, got, err)
			}
			fmt.Fprint(first, "hello")
			if got, err := io.ReadAll(first); string(got) != "default/web:80 got hello" {
				t.Errorf("the first connection got %q, %v", got, err)
			}
			again, _ := connect(t, conn, most+1, 81)
			fmt.Fprint(again, "hello")
			if got, err := io.ReadAll(again); string(got) != "default/web:81 got hello" {
				t.Errorf("a connection after one has ended got %q, %v", got, err)
			}
		})
	}
}
