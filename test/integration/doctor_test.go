// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/test/internal/testnode"
)

// diagnosis is the report of the command doctor.
type diagnosis struct {
	Findings []struct{ Check, Problem, Fix string }
	Passed   []string
	Skipped  []struct{ Check, Text string }
	Unknown  []struct{ Check, Text string }
}

// doctor runs the command with the identity and the certificate of a node at the address.
func (w *world) doctor(credentials testapi.NodeCredentials, address string, args ...string) diagnosis {
	w.Helper()
	// The command runs in a process of its own, because it replaces the logger of the Kubernetes libraries.
	cmd := exec.CommandContext(w.Context(), testnode.Program(w.T), append([]string{
		"doctor", "--output=json", "--timeout=" + patience.String(), "--provider=mock", "--nodename=" + w.nodeName, "--node-ip=" + address, "--listen-address=" + address,
		"--kubeconfig=" + credentials.Kubeconfig, "--tls-cert-file=" + credentials.CertFile, "--tls-private-key-file=" + credentials.KeyFile,
		"--client-ca-file=" + credentials.CAFile, "--admin-kubeconfig=" + w.api.KubeconfigPath,
	}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var d diagnosis
	if decoded := json.Unmarshal(out.Bytes(), &d); decoded != nil {
		w.Fatalf("doctor: %v: %v: %s%s", err, decoded, &out, &said)
	}
	if (err != nil) != (len(d.Findings)+len(d.Unknown) > 0) {
		w.Errorf("doctor ended with %v and this report: %s", err, &out)
	}
	return d
}

// finds checks that all findings of the doctor come from the given check, and that they contain the words.
func (d diagnosis) finds(t *testing.T, check string, words ...string) {
	t.Helper()
	var about []string
	for _, f := range d.Findings {
		if text := f.Problem + "\n" + f.Fix; f.Check != check {
			t.Errorf("found by %s: %s", f.Check, text)
		} else {
			about = append(about, text)
		}
	}
	for _, word := range words {
		if !strings.Contains(strings.Join(about, "\n"), word) {
			t.Errorf("%s: got %q, want %q in it", check, about, word)
		}
	}
	if len(d.Unknown) > 0 {
		t.Errorf("not to be told: %v", d.Unknown)
	}
}

// healthy checks that the doctor found no problem and that the given checks passed.
func (d diagnosis) healthy(t *testing.T, checks ...string) {
	t.Helper()
	d.finds(t, "nothing")
	for _, check := range checks {
		if !slices.Contains(d.Passed, check) {
			t.Errorf("%s did not pass: %v", check, d.Skipped)
		}
	}
}

// TestDoctorOfANode runs the doctor with the identity of a node, in a cluster whose API server reaches the
// node's port.
func TestDoctorOfANode(t *testing.T) {
	t.Parallel()
	if !inNamespace() {
		t.Skip("the tests may not make a network namespace here, and to the loopback addresses outside of one the API server does not proxy")
	}
	w := newWorld(t)
	credentials := w.api.NodeCredentials(t, w.nodeName, nodeAddress)
	port := strconv.Itoa(freePort(t))
	free := "--port=" + port
	d := w.doctor(credentials, nodeAddress, free)
	d.healthy(t, "api-server", "identity", "rights", "webhook-authentication", "certificate-requests", "lease", "serving-certificate", "port", "client-certificate")

	w.register(nodeAddress)
	w.doctor(credentials, nodeAddress, free).healthy(t, "reachable", "port")
	w.doctor(credentials, nodeAddress, free, "--admin-kubeconfig=").healthy(t) // the node itself may not use nodes/proxy

	w.patchStatus(`{"daemonEndpoints":{"kubeletEndpoint":{"Port":` + port + `}}}`)
	w.doctor(credentials, nodeAddress, free).healthy(t, "reachable", "port")

	other := w.api.NodeCredentials(t, w.nodeName, "192.0.2.200")
	d = w.doctor(other, nodeAddress, free)
	if len(d.Findings) != 2 || d.Findings[0].Check != "serving-certificate" || d.Findings[1].Check != "reachable" ||
		!strings.Contains(d.Findings[1].Fix, "--kubelet-certificate-authority") {
		t.Errorf("a certificate for another address: got %+v", d)
	}

	w.patchStatus(`{"addresses":[{"type":"InternalIP","address":"192.0.2.200"}]}`) // an unused address
	w.doctor(credentials, nodeAddress, free).finds(t, "reachable", "does not reach the kubelet API", "192.0.2.200")
}

// TestDoctorOfARunningNode runs the doctor beside the node.
func TestDoctorOfARunningNode(t *testing.T) {
	t.Parallel()
	if !inNamespace() {
		t.Skip("the tests may not make a network namespace here, and to the loopback addresses outside of one the API server does not proxy")
	}
	w := newWorld(t)
	credentials := w.api.NodeCredentials(t, w.nodeName, nodeAddress)
	w.startProgram(nodeAddress, credentials)
	node := w.awaitNode("has a port", func(n *corev1.Node) bool { return nodeReady(n) && n.Status.DaemonEndpoints.KubeletEndpoint.Port != 0 })
	port := "--port=" + strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port))
	w.doctor(credentials, nodeAddress, port).healthy(t, "lease", "reachable")
}

func TestDoctorFindsAStrangersRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	credentials := w.api.NodeCredentials(t, w.nodeName)
	credentials.Kubeconfig = w.serviceAccountKubeconfig("default")
	d := w.doctor(credentials, "127.0.0.1", "--port=0")
	missing := 0
	for _, f := range d.Findings {
		if f.Check != "rights" && f.Check != "webhook-authentication" {
			t.Errorf("found %+v", f)
		}
		missing++
	}
	if missing < 10 {
		t.Errorf("a service account without any right lacks %d: %+v", missing, d.Findings)
	}
}

func TestDoctorFindsAnotherIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.api.NodeCredentials(t, w.api.NodeName(t))
	d := w.doctor(other, "127.0.0.1", "--port=0")
	if len(d.Findings) == 0 || d.Findings[0].Check != "identity" {
		t.Errorf("got %+v, want the identity", d.Findings)
	}
}

func TestDoctorFindsATwin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	credentials := w.api.NodeCredentials(t, w.nodeName)
	seconds, now := int32(40), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: w.nodeName, Annotations: map[string]string{"virtual-kubelet.io/holder": `{"id":"x","host":"elsewhere","pid":7}`}},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &now, HolderIdentity: &w.nodeName},
	}
	leases := w.client().CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = leases.Delete(context.Background(), w.nodeName, metav1.DeleteOptions{}) })
	w.doctor(credentials, "127.0.0.1", "--port=0").finds(t, "lease", "process 7 on host elsewhere acts for node "+w.nodeName)
}

func TestDoctorFindsARequestForACertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	credentials := w.api.NodeCredentials(t, w.nodeName)
	csr := w.requestCertificate(certificatesv1.KubeletServingSignerName)
	w.doctor(credentials, "127.0.0.1", "--port=0").finds(t, "certificate-requests", "waits for approval", "kubectl certificate approve "+csr.Name)

	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Policy", Message: "no such machine",
	})
	if _, err := w.client().CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.doctor(credentials, "127.0.0.1", "--port=0").finds(t, "certificate-requests", "was denied: Policy: no such machine")
}

// requestCertificate creates a request for a certificate of the node.
func (w *world) requestCertificate(signer string) *certificatesv1.CertificateSigningRequest {
	w.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + w.nodeName, Organization: []string{"system:nodes"}},
		DNSNames: []string{w.nodeName},
	}, key)
	if err != nil {
		w.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: w.nodeName},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
	requests := w.client().CertificatesV1().CertificateSigningRequests()
	csr, err = requests.Create(w.Context(), csr, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = requests.Delete(context.Background(), csr.Name, metav1.DeleteOptions{}) })
	return csr
}

// register creates the Node object, ready at the address, without a program behind it.
func (w *world) register(address string) {
	w.Helper()
	if _, err := w.client().CoreV1().Nodes().Create(w.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodeName}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.patchStatus(`{"addresses":[{"type":"InternalIP","address":"` + address + `"}]}`)
}

func (w *world) patchStatus(status string) {
	w.Helper()
	if _, err := w.client().CoreV1().Nodes().PatchStatus(w.Context(), w.nodeName, []byte(`{"status":`+status+`}`)); err != nil {
		w.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", nodeAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// serviceAccountKubeconfig writes a kubeconfig with a token of a service account of the test's namespace.
func (w *world) serviceAccountKubeconfig(name string) string {
	w.Helper()
	token, err := w.client().CoreV1().ServiceAccounts(w.namespace).CreateToken(w.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(w.api.KubeconfigPath)
	if err != nil {
		w.Fatal(err)
	}
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	path := filepath.Join(w.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.Fatal(err)
	}
	return path
}
