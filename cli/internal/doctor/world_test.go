// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// world is a node whose settings are right, until a test changes something.
type world struct {
	*testing.T
	ca *testpki.Authority
	Config

	// The state and the answers of the API server.
	user    string
	token   string // the accepted token
	denied  string // "verb resource" of the refused permission
	ahead   time.Duration
	request *certificatesv1.CertificateSigningRequest
	lease   *coordinationv1.Lease
	node    *corev1.Node
	sets    []appsv1.DaemonSet
	proxied string // the target of nodes/proxy; "" for the node's port
	serving *x509.Certificate

	kubeconfig *clientcmdapi.Config
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, ca: testpki.New(t), user: "system:node:n1", token: "good"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.Config = Config{
		NodeName: "n1", NodeIP: "127.0.0.1", Serve: true, ListenAddress: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port,
		Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), Timeout: 20 * time.Second,
	}
	_ = l.Close() // the port is free again
	w.CertFile, w.KeyFile = w.ca.Issue(t, "n1")
	w.kubeconfig = clientcmdapi.NewConfig()
	w.kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{CertificateAuthorityData: w.ca.PEM}
	w.kubeconfig.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: "good"}
	w.kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	w.kubeconfig.CurrentContext = "test"
	return w
}

// examine starts the API server, unless the kubeconfig names another, and runs the doctor.
func (w *world) examine() *Report {
	w.Helper()
	return w.examineWith(w.Kubeconfig)
}

// examineWith runs the doctor with the given kubeconfig in the settings, instead of the kubeconfig of the world.
func (w *world) examineWith(kubeconfig string) *Report {
	w.Helper()
	if cluster := w.kubeconfig.Clusters["test"]; cluster.Server == "" {
		server := httptest.NewUnstartedServer(w)
		pair, err := tls.LoadX509KeyPair(w.ca.Issue(w.T, "kube-apiserver"))
		if w.serving != nil {
			pair, err = w.issue(w.serving)
		}
		if err != nil {
			w.Fatal(err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		server.Config.ErrorLog = quiet
		server.StartTLS()
		w.Cleanup(server.Close)
		cluster.Server = server.URL
	}
	if err := clientcmd.WriteToFile(*w.kubeconfig, w.Kubeconfig); err != nil {
		w.Fatal(err)
	}
	config := w.Config
	config.Kubeconfig = kubeconfig
	return Run(w.Context(), config)
}

func (w *world) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	rw.Header().Set("Date", time.Now().Add(w.ahead).UTC().Format(http.TimeFormat))
	rw.Header().Set("Content-Type", "application/json")
	if req.Header.Get("Authorization") != "Bearer "+w.token {
		refuse(rw, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		return
	}
	switch path := req.URL.Path; {
	case path == "/version":
		_, _ = io.WriteString(rw, `{"major": "1"}`)
	case strings.HasSuffix(path, "/selfsubjectreviews"):
		review := authenticationv1.SelfSubjectReview{}
		review.Status.UserInfo = authenticationv1.UserInfo{Username: w.user, Groups: []string{nodesGroup}}
		answer(rw, review)
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		answer(rw, w.review(req))
	case strings.HasSuffix(path, "/certificatesigningrequests"):
		list := certificatesv1.CertificateSigningRequestList{}
		if w.request != nil && req.URL.Query().Get("fieldSelector") == "spec.signerName="+w.request.Spec.SignerName {
			list.Items = append(list.Items, *w.request)
		}
		answer(rw, list)
	case strings.Contains(path, "/leases/") && w.lease != nil:
		answer(rw, w.lease)
	case strings.Contains(path, "/proxy/") && w.node != nil:
		w.proxy(rw, path[strings.Index(path, "/proxy/")+len("/proxy"):])
	case strings.HasSuffix(path, "/daemonsets") && w.denied == "list daemonsets":
		refuse(rw, http.StatusForbidden, metav1.StatusReasonForbidden, "daemonsets.apps is forbidden")
	case strings.HasSuffix(path, "/daemonsets"):
		answer(rw, appsv1.DaemonSetList{Items: w.sets})
	case strings.HasPrefix(path, "/api/v1/nodes/") && w.node != nil:
		answer(rw, w.node)
	default:
		refuse(rw, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	}
}

// review allows everything except denied.
func (w *world) review(req *http.Request) *authorizationv1.SelfSubjectAccessReview {
	review := &authorizationv1.SelfSubjectAccessReview{}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, review)
	}
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = err == nil && asked != nil && asked.Verb+" "+asked.Resource != w.denied
	return review
}

// proxy forwards a request as an API server does, and trusts the authority of the world.
func (w *world) proxy(rw http.ResponseWriter, path string) {
	to := w.proxied
	if to == "" {
		to = net.JoinHostPort(w.ListenAddress, port(w.Port))
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: w.ca.ClientConfig(w.T, nil, ""), DisableKeepAlives: true}}
	resp, err := client.Get("https://" + to + path)
	if err != nil {
		refuse(rw, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "error trying to reach service: "+err.Error())
		return
	}
	defer func() { _ = resp.Body.Close() }()
	rw.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(rw, resp.Body)
}

func answer(rw http.ResponseWriter, object any) { _ = json.NewEncoder(rw).Encode(object) }

func refuse(rw http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	rw.WriteHeader(code)
	answer(rw, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// issue makes a certificate of the world's authority, and a key for it.
func (w *world) issue(template *x509.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template.SerialNumber = big.NewInt(2)
	der, err := x509.CreateCertificate(rand.Reader, template, w.ca.Cert, &key.PublicKey, w.ca.Key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// files writes a certificate and its key.
func (w *world) files(template *x509.Certificate) (certFile, keyFile string) {
	pair, err := w.issue(template)
	if err != nil {
		w.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		w.Fatal(err)
	}
	dir := w.TempDir()
	return w.write(dir, "tls.crt", "CERTIFICATE", pair.Certificate[0]), w.write(dir, "tls.key", "EC PRIVATE KEY", key)
}

func (w *world) write(dir, name, kind string, der []byte) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// certificate returns a template for a certificate of the address. It is valid between the two times, relative
// to now.
func certificate(from, to time.Duration, address string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{nodesGroup}}, NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to),
		IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// csr returns a request of the node to a signer.
func (w *world) csr(signer string, conditions ...certificatesv1.CertificateSigningRequestCondition) *certificatesv1.CertificateSigningRequest {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:n1"}}, key)
	if err != nil {
		w.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))},
		Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})},
		Status:     certificatesv1.CertificateSigningRequestStatus{Conditions: conditions},
	}
}

// held returns a lease that a process on the host has just renewed.
func held(host string) *coordinationv1.Lease {
	seconds := int32(40)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{holderAnnotation: `{"id":"x","host":"` + host + `","pid":7}`}},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
}

// registered returns the node object in the API server.
func registered(p int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(p)
	return n
}
