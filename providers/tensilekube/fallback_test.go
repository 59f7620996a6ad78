// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestStreamsWithoutWebsockets has a proxy between the clusters that blocks websockets, like some company
// proxies.
func TestStreamsWithoutWebsockets(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "no-websockets", "vk-0")
	access := rest.CopyConfig(w.API.Config)
	access.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades
	next, err := rest.TransportFor(access)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(access.Host)
	if err != nil {
		t.Fatal(err)
	}
	var refused, upgraded atomic.Int32
	proxy := &httputil.ReverseProxy{Transport: next, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch upgrade := r.Header.Get("Upgrade"); {
		case strings.EqualFold(upgrade, "websocket"):
			refused.Add(1)
			http.Error(out, "no websockets", http.StatusForbidden)
			return
		case upgrade != "":
			upgraded.Add(1)
		}
		proxy.ServeHTTP(out, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	u.access = u.line.Through(&rest.Config{Host: server.URL})
	p, _ := u.start()
	const port = 18083
	pod := u.Pod("default", "web", program.Program{Listen: port, Stay: program.Forever})
	u.Create(p, pod)
	u.UntilRuns(p, pod)

	c := &remotetest.Console{}
	if err := p.RunInContainer(t.Context(), "default", "web", "main", append([]string{"program"}, program.Program{Print: []string{"there"}}.Args()...), c); err != nil || c.Out.String() != "there\n" {
		t.Errorf("exec: wrote %q (%v)", c.Out.String(), err)
	}
	u.Until("an answer through the port", func() (bool, string) {
		mine, theirs := net.Pipe()
		defer mine.Close()
		go func() { // ends with the pipe
			_ = p.PortForward(t.Context(), "default", "web", port, theirs)
			_ = theirs.Close()
		}()
		answer := make([]byte, 5)
		_, err := mine.Write([]byte("hello"))
		if err == nil {
			_, err = io.ReadFull(mine, answer)
		}
		if err != nil {
			return false, err.Error()
		}
		return string(answer) == "hello", string(answer)
	})
	if refused.Load() < 2 || upgraded.Load() < 2 {
		t.Errorf("%d websockets were tried and %d other upgrades made, want both for exec and port-forward", refused.Load(), upgraded.Load())
	}
}
