// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// TestFault48SurplusStreamsHoldNothing: a client opens more SPDY streams than it announced while the session
// runs. Each session ends at the first surplus stream, and leaves no goroutine behind.
func TestFault48SurplusStreamsHoldNothing(t *testing.T) {
	const clients, surplus = 10, 7
	started := make(chan struct{}, clients)
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}})
	before := goleak.IgnoreCurrent()
	for range clients {
		conn := dial(t, s, execPath+"&output=1", "v4.channel.k8s.io")
		for _, kind := range []string{"error", "stdout"} {
			if _, err := conn.CreateStream(http.Header{"Streamtype": {kind}}); err != nil {
				t.Fatal(err)
			}
		}
		within(t, started, 30*time.Second, "start of the session")
		for range surplus {
			go func() { _, _ = conn.CreateStream(http.Header{"Streamtype": {"stdout"}}) }() // the client waits up to half a minute for a reply
		}
		within(t, s.served, 30*time.Second, "end of the request")
		conn.Close()
	}
	// The clients wait a while longer for their surplus streams. A leak on the node's side would show other
	// functions.
	left := goleak.Find(before,
		goleak.IgnoreAnyFunction("k8s.io/streaming/pkg/httpstream/spdy.(*connection).CreateStream"),
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/httpstream/spdy.(*connection).CreateStream"), // of older clients
		goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).shutdown"),
		goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).shutdown.func1"))
	if left != nil {
		t.Errorf("after all clients have left: %v", left)
	}
	faultrow.Record(t, 48, fmt.Sprintf("%d exec sessions over SPDY, each with %d streams more than announced", clients, surplus),
		"every session ended at the first surplus stream, goroutines back to what they were: %v", left == nil)
}
