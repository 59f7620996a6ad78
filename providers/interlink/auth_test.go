// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/plugin"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// TestPluginWithToken checks that interLink's own API server reaches a plugin on a TCP port only with the token
// in the URL of its sidecar.
func TestPluginWithToken(t *testing.T) {
	needServer(t)
	const token = "canary-token-of-the-plugin"
	h := &home{Home: remotetest.NewHome(t, "vk-0"), dir: shortDir(t), cloud: inprocess.New(t.Context())}
	file := filepath.Join(h.dir, "token")
	write(t, file, token+"\n")
	at, _ := startPluginWith(t, plugin.Options{Runner: goroutines(h.cloud), StateDir: filepath.Join(h.dir, "state"), Listen: "http://127.0.0.1:0", TokenFile: file})
	_, port, _ := net.SplitHostPort(at.String())
	serve := func(name, user string) (url string) {
		dir := filepath.Join(h.dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		startServerWith(t, dir, fmt.Sprintf("InterlinkAddress: unix://%s/api\nSidecarURL: http://%s127.0.0.1\nSidecarPort: %q\nErrorsOnlyLogging: true\n", dir, user, port))
		reached(t, "unix", dir+"/api")
		return "unix://" + dir + "/api"
	}
	h.config = Config{URL: serve("without", "")}
	p, stop := h.start()
	if err := p.Ping(h.Context()); err == nil || !strings.Contains(err.Error(), ": the plugin wants its token") || strings.Contains(err.Error(), token) {
		t.Errorf("without the token: %v", err)
	}
	stop()
	h.config = Config{URL: serve("with", "plugin:"+token+"@")}
	p, _ = h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	h.Delete(p, pod)
	h.UntilGone(p, pod)
	if said, err := os.ReadFile(filepath.Join(h.dir, "with", "api.log")); err != nil || bytes.Contains(said, []byte(token)) {
		t.Errorf("the log of the API server has the token: %v", err)
	}
}

// TestCertificatesAreRotated checks that interLink's own API server accepts the certificates of its authority,
// and that replaced certificates count at the next connection, in both directions.
func TestCertificatesAreRotated(t *testing.T) {
	needServer(t)
	h := &home{Home: remotetest.NewHome(t, "vk-0"), dir: shortDir(t), cloud: inprocess.New(t.Context())}
	sidecar, _ := startPlugin(t, h.dir, goroutines(h.cloud), "")
	mine, other := testpki.New(t), testpki.New(t)
	own := filepath.Join(h.dir, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(h.dir, "ca.pem")
	write(t, ca, string(mine.PEM))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	serve := func(authority *testpki.Authority) (stop func()) {
		certFile, keyFile := authority.Issue(t, "server")
		stop = startServerWith(t, h.dir, fmt.Sprintf("InterlinkAddress: https://127.0.0.1\nInterlinkPort: %q\nSidecarURL: %s\nTLS: {Enabled: true, CertFile: %s, KeyFile: %s, CACertFile: %s}\n",
			port, sidecar, certFile, keyFile, filepath.Join(h.dir, "ca.pem")))
		reached(t, "tcp", "127.0.0.1:"+port)
		return stop
	}
	stopServer := serve(mine)
	certFile, keyFile := mine.IssueInto(t, own, "node")
	h.config = Config{URL: "https://127.0.0.1:" + port, TLS: TLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile}}
	p, _ := h.start()
	connect := func() error { // an open connection would stay unchanged
		p.client.http.CloseIdleConnections()
		return p.Ping(h.Context())
	}
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	other.IssueInto(t, own, "node")
	eventually(t, "a certificate of another authority to be refused", func() bool { return connect() != nil })
	mine.IssueInto(t, own, "node")
	eventually(t, "the next certificate to be taken", func() bool { return connect() == nil })
	stopServer()
	write(t, ca, string(other.PEM)) // both sides change their authority
	serve(other)
	other.IssueInto(t, own, "node")
	eventually(t, "the next authority to be taken", func() bool { return connect() == nil })
	h.UntilRuns(p, pod)
	if n := h.cloud.Instances(pod.UID); n != 1 {
		t.Errorf("%d instances, want 1", n)
	}
}
