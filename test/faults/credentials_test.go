// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/clientcert"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// TestFault23RotatedClientCertificate replaces the files of the daemon's client certificate while
// it works.
func TestFault23RotatedClientCertificate(t *testing.T) {
	if faultrow.Shared() {
		t.Skip("the identity of a node is that of one node: those of a group have a ServiceAccount")
	}
	t.Parallel()
	w := newWorld(t)
	config := w.nodeConfig()
	outcomes := &outcomes{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &observed{next: next, to: outcomes} })
	following, err := clientcert.Reloading(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(following)
	if err != nil {
		t.Fatal(err)
	}
	w.opts = append(w.opts, nodeutil.WithClient(client), func(cfg *nodeutil.NodeConfig) error {
		delete(cfg.NodeSpec.Labels, "kubernetes.io/role") // a node may not set this label
		return nil
	})
	daemon := w.start()
	names := w.startMany("pod", 10)

	const rotations = 10
	every := inForm(1500*time.Millisecond, 2*time.Minute)
	began := time.Now()
	var n int32
	for range rotations {
		w.rotate(config)
		for next := time.Now().Add(every); time.Now().Before(next); n++ {
			w.restarts(names, n)
			w.sleep(100 * time.Millisecond)
		}
	}
	w.pods.await(t, "the last status has arrived", func(pods []*corev1.Pod) bool { return all(pods, restarted(n-1)) })
	if n := outcomes.refused.Load() + outcomes.handshakes.Load() + outcomes.cut.Load(); n > 0 {
		t.Errorf("%d requests were refused, cut or had no handshake; the last: %v", n, outcomes.last.Load())
	}
	if n := w.readyFlaps(began); n > 0 {
		t.Errorf("the node was not ready %d times", n)
	}
	w.untouched(began)
	w.alive(daemon)
	faultrow.Record(t, 23, fmt.Sprintf("client certificate and key replaced %d times, every %v", rotations, every),
		"requests %d, refused %d, failed handshakes %d, lost statuses 0, cut %d",
		outcomes.all.Load(), outcomes.refused.Load(), outcomes.handshakes.Load(), outcomes.cut.Load())
}

// nodeConfig returns the node's own identity, in files.
func (w *world) nodeConfig() *rest.Config {
	w.Helper()
	dir := w.TempDir()
	config := &rest.Config{Host: w.api.Config.Host, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAFile: w.api.CAFile, CertFile: filepath.Join(dir, "client.crt"), KeyFile: filepath.Join(dir, "client.key"),
	}}
	w.rotate(config)
	return config
}

// rotate writes a new certificate and its key, with the same identity. A reader between the two writes sees a
// pair that does not match, and keeps the old pair.
func (w *world) rotate(config *rest.Config) {
	w.Helper()
	fresh, err := clientcmd.BuildConfigFromFlags("", w.api.NodeCredentials(w.T, w.nodeName).Kubeconfig)
	if err == nil {
		err = rest.LoadTLSFiles(fresh)
	}
	if err != nil {
		w.Fatal(err)
	}
	for path, data := range map[string][]byte{config.CertFile: fresh.CertData, config.KeyFile: fresh.KeyData} {
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			w.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			w.Fatal(err)
		}
	}
}

// outcomes counts how requests ended.
type outcomes struct {
	all, refused, handshakes, cut atomic.Int64
	last                          atomic.Value // the last failure
}

// observed is a transport that counts the outcomes of requests.
type observed struct {
	next http.RoundTripper
	to   *outcomes
}

func (o *observed) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	o.to.all.Add(1)
	switch {
	case err != nil && (strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "x509:")):
		o.to.handshakes.Add(1)
		o.to.last.Store(fmt.Sprintf("%s %s: %v", req.Method, req.URL.Path, err))
	case err != nil && req.Context().Err() == nil:
		o.to.cut.Add(1)
		o.to.last.Store(fmt.Sprintf("%s %s: %v", req.Method, req.URL.Path, err))
	case err == nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden):
		o.to.refused.Add(1)
		o.to.last.Store(fmt.Sprintf("%s %s: %s", req.Method, req.URL.Path, resp.Status))
	}
	return resp, err
}
