// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// mapServer is a fake home API server without NamespaceMaps, for synctest bubbles. Its watches end when the
// permission to read NamespaceMaps is revoked.
type mapServer struct{ forbids atomic.Bool }

// RoundTrip implements http.RoundTripper.
func (s *mapServer) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(code int, body io.Reader) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body), Request: r}, nil
	}
	switch q := r.URL.Query(); {
	case s.forbids.Load():
		return answer(http.StatusForbidden, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"cannot list","code":403}`))
	case q.Get("sendInitialEvents") != "":
		return answer(http.StatusUnprocessableEntity, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	case q.Get("watch") != "":
		time.Sleep(time.Minute)
		return answer(http.StatusOK, strings.NewReader(""))
	}
	return answer(http.StatusOK, strings.NewReader(`{"kind":"NamespaceMapList","apiVersion":"`+group+"/"+version+`","metadata":{"resourceVersion":"1"},"items":[]}`))
}

// TestLostRightToNamespaceMapsIsSaid revokes the permission after the NamespaceMaps were listed, and grants it
// again.
func TestLostRightToNamespaceMapsIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &mapServer{}
		n, err := newNamespaces(Config{TenantNamespace: "tenant", ForeignClusterID: "foreign"}, &rest.Config{Host: "http://home.test", Transport: s, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { n.watchMaps(ctx); close(done) }()
		time.Sleep(time.Second)
		if err := n.checkMaps(ctx); err != nil {
			t.Errorf("with the right: %v", err)
		}
		s.forbids.Store(true)
		time.Sleep(3 * time.Minute)
		if err := n.checkMaps(ctx); err == nil || !strings.Contains(err.Error(), "cannot list") {
			t.Errorf("without the right: got %v", err)
		}
		s.forbids.Store(false)
		if err := n.checkMaps(ctx); err != nil {
			t.Errorf("with the right again: %v", err)
		}
		cancel()
		<-done
	})
}
