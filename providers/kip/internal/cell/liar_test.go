// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// liar returns a client of a server that has the certificate of a machine and sends any answer.
func liar(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	at := authority(t)
	a := agent(t, at.UserData("m1", "", time.Hour, 0), t.TempDir())
	address, end := serve(t, a)
	joined(t, at, "m1", address)
	end()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: callTime, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*a.cert}}}
	var serves sync.WaitGroup
	serves.Go(func() { _ = server.ServeTLS(l, "", "") }) // a closed server always returns an error
	t.Cleanup(func() {
		_ = server.Close()
		serves.Wait()
	})
	c := at.Client("m1", l.Addr().String())
	t.Cleanup(c.Close)
	return c
}

// TestMachineCannotSendItsNodeElsewhere: the node follows no redirect, because it reaches networks that a pod cannot reach, such as the metadata of its host.
func TestMachineCannotSendItsNodeElsewhere(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the node asks %s for %s", r.Host, r.URL.Path)
		_, _ = w.Write([]byte("secret"))
	}))
	defer inside.Close()
	c := liar(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL+"/credentials", http.StatusTemporaryRedirect)
	})
	if text, err := c.Logs(t.Context(), "main", api.ContainerLogOpts{}); err == nil {
		_ = text.Close()
		t.Error("the log is what another server says")
	}
	if err := c.Give(t.Context(), bundle("u1")); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("the pod is given: %v", err)
	}
}

// TestMachineCannotHoldARequest: a request ends with its context, also when the machine answers with a stream.
func TestMachineCannotHoldARequest(t *testing.T) {
	silent := make(chan struct{})
	c := liar(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := upgradeConnection(w)
		if err == nil {
			<-silent
			_ = conn.Close()
		}
	})
	defer close(silent)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.Stats(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("no answer is no error")
		}
	case <-time.After(10 * time.Second):
		t.Error("the request does not end")
	}
}
