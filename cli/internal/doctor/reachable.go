// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// checkReachable makes the API server connect to the port of the node. If the node does not run here, a temporary server answers with a
// random word.
func checkReachable(ctx context.Context, e *exam) {
	if !e.Serve || e.noNames || e.port == nil && !e.here {
		e.skip("nothing of this node can serve on its port")
		return
	}
	asks, err := e.proxyClient()
	if err != nil {
		e.found("correct --admin-kubeconfig", "%v", err)
		return
	}
	node, err := asks.CoreV1().Nodes().Get(ctx, e.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		e.skip("node %s is not registered yet; run this again when it has been", e.NodeName)
		return
	case err != nil:
		e.unknown(fmt.Errorf("read node %s: %w", e.NodeName, err))
		return
	}
	path, want := "healthz", ""
	if e.port != nil {
		want = rand.Text()
		path = "doctor/" + want
		stop, err := e.serve("/"+path, want)
		if err != nil {
			e.unknown(err)
			return
		}
		defer stop()
	}
	body, err := asks.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", e.target(node), "proxy", path).DoRaw(ctx)
	said := message(body)
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(said, "nodes/proxy"): // the API server refused, not the node
		e.skip("%s may not use nodes/proxy, and need not; name the kubeconfig of an administrator with --admin-kubeconfig to check it", e.who())
	case err != nil && want != "" && e.RequestsCertificate && strings.Contains(said, "x509:"):
		e.skip("the API server comes to the port; the certificate for it is asked for when the node runs, so run this again then")
	case err != nil && strings.Contains(said, "address not allowed"): // loopback or link-local; not checked for logs and exec
		e.skip("the API server proxies to no loopback and no link-local address (%s); kubectl logs and exec do not go that way, and work if the API server runs on this machine", addresses(node))
	case err != nil:
		e.unreachable(node, fmt.Sprintf("%v: %s", err, said))
	case want != "" && string(body) != want:
		e.found("see that no other machine has the address, and that nothing in between answers for it",
			"something else than this machine answers at the address of the node, %s", addresses(node))
	}
}

// proxyClient returns the client for nodes/proxy.
func (e *exam) proxyClient() (kubernetes.Interface, error) {
	if e.AdminKubeconfig == "" {
		return e.client, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", e.AdminKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s cannot be used: %w", e.AdminKubeconfig, err)
	}
	config.Timeout = e.Timeout
	return kubernetes.NewForConfig(config)
}

// target names the node, and the port if it differs from the registered port; the API server then connects
// without checking the certificate.
func (e *exam) target(node *corev1.Node) string {
	registered := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if tcp, ok := e.listening(); ok && tcp != registered {
		return "https:" + node.Name + ":" + strconv.Itoa(tcp)
	}
	return node.Name
}

func (e *exam) listening() (port int, ok bool) {
	if e.port == nil {
		return 0, false
	}
	address, ok := e.port.Addr().(*net.TCPAddr)
	if !ok {
		return 0, false
	}
	return address.Port, true
}

// serve answers requests for path with text on the port of the node, with its certificate if it has one.
func (e *exam) serve(path, text string) (stop func(), err error) {
	pair, err := e.servingPair()
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != path {
				http.NotFound(w, req)
				return
			}
			_, _ = io.WriteString(w, text) // the caller may have disconnected
		}),
		ErrorLog:          stdlog.New(io.Discard, "", 0), // the API server reports failures
		ReadHeaderTimeout: 5 * time.Second,
	}
	listener := tls.NewListener(e.port, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when stop closes the server
	}()
	return func() {
		_ = server.Close()
		<-done
		e.port = nil
	}, nil
}

func (e *exam) servingPair() (tls.Certificate, error) {
	certFile, keyFile := e.CertFile, e.KeyFile
	if e.RequestsCertificate && e.CertDir != "" { // a node keeps the certificate and the key in one file, under the file name that a kubelet uses
		certFile = filepath.Join(e.CertDir, "kubelet-server-current.pem")
		keyFile = certFile
	}
	if certFile != "" && keyFile != "" {
		if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil {
			return pair, nil
		}
	}
	var ips []net.IP
	if ip := net.ParseIP(e.NodeIP); ip != nil {
		ips = append(ips, ip)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(e.NodeName, ips, nil)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// unreachable reports why the API server does not reach the node. The cause follows only from the error text said.
func (e *exam) unreachable(node *corev1.Node, said string) {
	fix := "see that the API server reaches " + addresses(node) + ": routes, firewalls, and --node-ip"
	has := func(text string) bool { return strings.Contains(said, text) }
	switch {
	case has("x509:"), has("tls:"):
		fix = "issue the serving certificate by the authority that kube-apiserver has as --kubelet-certificate-authority, for the address of the node"
	case has("is not allowed"), has("no addresses"), has("no preferred addresses"):
		fix = "set --node-ip to an address of this machine that other machines reach; the API server connects to no loopback and no link-local address"
	case has("connection refused"):
		fix = "see that --node-ip " + e.NodeIP + " is an address of this machine, that --listen-address includes it, and that the port is forwarded if there is NAT"
	case has("Unauthorized"):
		fix = "set --client-ca-file to the authority of the client certificate that kube-apiserver has as --kubelet-client-certificate"
	case has("Forbidden"):
		fix = "allow the user of kube-apiserver's --kubelet-client-certificate the resource nodes/proxy (ClusterRole system:kubelet-api-admin)"
	}
	e.found(fix, "the API server does not reach the kubelet API of this node, so kubectl logs and exec fail: %s", said)
}

// message returns the error text of a response.
func message(body []byte) string {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}
	const enough = 500
	return strings.TrimSpace(string(body[:min(len(body), enough)]))
}

// addresses returns the addresses of a node as text for users.
func addresses(node *corev1.Node) string {
	texts := make([]string, 0, len(node.Status.Addresses))
	for _, a := range node.Status.Addresses {
		texts = append(texts, fmt.Sprintf("%s %s", a.Type, a.Address))
	}
	if len(texts) == 0 {
		return "the node (which has no address)"
	}
	return fmt.Sprintf("%s, port %d", strings.Join(texts, ", "), node.Status.DaemonEndpoints.KubeletEndpoint.Port)
}
