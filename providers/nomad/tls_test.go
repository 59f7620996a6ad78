// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// authority is a certificate authority with the certificates of an agent and of a provider, in files.
type authority struct{ dir string }

func (o *authority) file(name string) string { return filepath.Join(o.dir, name) }

// client returns the TLS configuration of the provider.
func (o *authority) client() TLS {
	return TLS{CAFile: o.file("ca.pem"), CertFile: o.file("client.pem"), KeyFile: o.file("client-key.pem"), ServerName: "server.global.nomad"}
}

// renew replaces the authority and its certificates.
func (o *authority) renew(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	o.write(t, "ca", ca, ca, key, key)
	for name, hosts := range map[string][]string{"agent": {"server.global.nomad", "client.global.nomad", "localhost"}, "client": {"node.kubernetes"}} {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		o.write(t, name, &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: hosts[0]}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		}, ca, own, key)
	}
}

func (o *authority) write(t *testing.T, name string, c, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + "-key.pem": {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(o.file(file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	o := &authority{dir: t.TempDir()}
	o.renew(t)
	return o
}

// TestCertificatesAreRenewed checks that the agent and the provider accept only each other's certificates, and
// that renewed certificates are used without a restart of the node or of its pods.
func TestCertificatesAreRenewed(t *testing.T) {
	agents, stranger := newAuthority(t), newAuthority(t)
	a := newAgent(t, agent{acl: true, tls: agents})
	c := a.config("tls")
	old := *agents
	old.dir = t.TempDir()
	if err := os.CopyFS(old.dir, os.DirFS(agents.dir)); err != nil {
		t.Fatal(err)
	}
	strange := stranger.client()
	strange.CAFile = agents.client().CAFile
	t.Run("wrong", func(t *testing.T) {
		for want, tls := range map[string]TLS{
			"certificate signed by unknown authority": {CAFile: stranger.file("ca.pem"), CertFile: agents.client().CertFile, KeyFile: agents.client().KeyFile, ServerName: "server.global.nomad"},
			"is valid for server.global.nomad":        {CAFile: agents.client().CAFile, CertFile: agents.client().CertFile, KeyFile: agents.client().KeyFile, ServerName: "server.mars.nomad"},
			"certificate required":                    {CAFile: agents.client().CAFile, ServerName: "server.global.nomad"},
			"unknown certificate authority":           strange,
		} {
			t.Run(want, func(t *testing.T) {
				t.Parallel() // each waits for a first answer
				wrong := c
				wrong.TLS = tls
				h := openHome(t, wrong, objects{})
				if err := h.Examine(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Examine: got %v, want one with %q", err, want)
				}
				if err := h.CreatePod(t.Context(), shellPod("wrong", DriverRawExec, forever)); err == nil || errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err) {
					t.Errorf("CreatePod: got %v, want an error of no kind", err)
				}
			})
		}
	})
	a.nothingLeft(t)

	h := openHome(t, c, objects{secret: map[string][]byte{"p": []byte("x")}})
	pod := keysPod()
	pod.Spec.Containers[0].Command[2] = "cat /keys/p; " + forever
	h.create(pod)
	before := h.until(pod, "running", phase(corev1.PodRunning))
	if !await(t, func() bool { return h.log(pod) == "x" }) {
		t.Errorf("the log is %q, want the secret", h.log(pod))
	}
	agents.renew(t)
	if err := a.command.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if !await(t, func() bool {
		_, _, err := h.d.client.nodes(t.Context(), 0)
		return err == nil && h.Ping(t.Context()) == nil
	}) {
		t.Fatalf("with new certificates: %v\n%s", h.Ping(t.Context()), a.log())
	}
	stale := c
	stale.TLS = old.client()
	if !await(t, func() bool {
		client, _ := newClient(stale)
		_, _, err := client.nodes(t.Context(), 0)
		return err != nil
	}) {
		t.Error("the agent takes the old certificates, so it proves nothing that the node is connected")
	}
	late := shellPod("late", DriverExec, "echo late; "+forever)
	h.create(late)
	h.until(late, "running", phase(corev1.PodRunning))
	if code, out := h.exec(late, "echo over TLS"); code != 0 || out != "over TLS\n" {
		t.Errorf("exec: got %d and %q", code, out)
	}
	if after := h.until(pod, "running", phase(corev1.PodRunning)); after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("the pod was replaced: %v, before %v", after.Status, before.Status)
	}
	h.remove(pod, late)
	a.nothingLeft(t)
}
