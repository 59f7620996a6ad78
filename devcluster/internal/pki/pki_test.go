// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func newDir(t *testing.T) Dir {
	t.Helper()
	d := Dir(filepath.Join(t.TempDir(), "pki"))
	made, err := d.Ensure()
	if err != nil || !made {
		t.Fatalf("Ensure: got %v, %v, want certificates made", made, err)
	}
	return d
}

func leafOf(t *testing.T, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func roots(t *testing.T, d Dir, authority string) *x509.CertPool {
	t.Helper()
	data, err := os.ReadFile(d.Cert(authority))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		t.Fatalf("no certificate in %s", d.Cert(authority))
	}
	return pool
}

func TestCertificates(t *testing.T) {
	d := newDir(t)
	authorities := []string{ClusterCA, EtcdCA, FrontProxyCA}
	for _, c := range []struct {
		name, authority, user string
		groups                []string
		usages                []x509.ExtKeyUsage
		host                  string
	}{
		{APIServer, ClusterCA, "kube-apiserver", nil, serverAuth, "127.0.0.1"},
		{APIServer, ClusterCA, "kube-apiserver", nil, serverAuth, "kubernetes.default.svc"},
		{APIServer, ClusterCA, "kube-apiserver", nil, serverAuth, ServiceIP},
		{KubeletClient, ClusterCA, "kube-apiserver-kubelet-client", nil, clientAuth, ""},
		{Admin, ClusterCA, "admin", []string{"system:masters"}, clientAuth, ""},
		{ControllerManager, ClusterCA, "system:kube-controller-manager", nil, clientAuth, ""},
		{Scheduler, ClusterCA, "system:kube-scheduler", nil, clientAuth, ""},
		{FrontProxyClient, FrontProxyCA, "front-proxy-client", nil, clientAuth, ""},
		{EtcdServer, EtcdCA, "etcd", nil, bothAuth, "127.0.0.1"},
		{EtcdClient, EtcdCA, "kube-apiserver", nil, clientAuth, ""},
	} {
		cert := leafOf(t, d.Cert(c.name), d.Key(c.name))
		if cert.Subject.CommonName != c.user || !slices.Equal(cert.Subject.Organization, c.groups) {
			t.Errorf("%s: got user %q in %q, want %q in %q", c.name, cert.Subject.CommonName, cert.Subject.Organization, c.user, c.groups)
		}
		if !slices.Equal(cert.ExtKeyUsage, c.usages) {
			t.Errorf("%s: got usages %v, want %v", c.name, cert.ExtKeyUsage, c.usages)
		}
		for _, authority := range authorities {
			_, err := cert.Verify(x509.VerifyOptions{Roots: roots(t, d, authority), KeyUsages: c.usages, DNSName: c.host})
			if (err == nil) != (authority == c.authority) {
				t.Errorf("%s: verify with %s: got %v, want only %s to have signed it", c.name, authority, err, c.authority)
			}
		}
	}
}

func TestKeysAreSecret(t *testing.T) {
	d := newDir(t)
	keys, err := filepath.Glob(d.Key("*"))
	if err != nil || len(keys) == 0 {
		t.Fatalf("find keys: got %q, %v", keys, err)
	}
	for _, path := range append(keys, string(d)) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: got mode %v, want nothing for others", path, info.Mode())
		}
	}
}

func TestEnsureKeepsWhatIsThere(t *testing.T) {
	d := newDir(t)
	before, err := os.ReadFile(d.Cert(ClusterCA))
	if err != nil {
		t.Fatal(err)
	}
	made, err := d.Ensure()
	if err != nil || made {
		t.Fatalf("second Ensure: got %v, %v, want nothing made", made, err)
	}
	if after, _ := os.ReadFile(d.Cert(ClusterCA)); string(after) != string(before) {
		t.Error("the second Ensure changed the authority")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(string(d)), ".pki-*")); len(left) != 0 {
		t.Errorf("drafts are left: %q", left)
	}
}

func TestEnsureServesAnotherAddress(t *testing.T) {
	d := newDir(t)
	serial := func() string { return leafOf(t, d.Cert(APIServer), d.Key(APIServer)).SerialNumber.String() }
	first := serial()
	for _, ip := range []string{"127.0.0.1", "192.0.2.2", "192.0.2.2"} {
		if err := d.EnsureServes(net.ParseIP(ip)); err != nil {
			t.Fatal(err)
		}
		if err := leafOf(t, d.Cert(APIServer), d.Key(APIServer)).VerifyHostname(ip); err != nil {
			t.Error(err)
		}
		switch ip {
		case "127.0.0.1":
			if serial() != first {
				t.Error("an address that the certificate has: got another certificate, want the same")
			}
		default:
			if serial() == first {
				t.Error("a new address: got the same certificate, want another one")
			}
		}
	}
	if err := leafOf(t, d.Cert(APIServer), d.Key(APIServer)).VerifyHostname("kubernetes.default.svc"); err != nil {
		t.Error(err)
	}
}

func TestNodeCredentials(t *testing.T) {
	d, dir := newDir(t), filepath.Join(t.TempDir(), "nodes")
	out := filepath.Join(dir, "vk-0")
	if err := d.WriteNode(out, Node{Name: "vk-0", Cluster: "c", Server: "https://127.0.0.1:1", SANs: []string{"10.1.2.3", "vk.example"}}); err != nil {
		t.Fatal(err)
	}
	serving := leafOf(t, filepath.Join(out, NodeServingCert), filepath.Join(out, NodeServingKey))
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "vk-0", "10.1.2.3", "vk.example"} {
		if _, err := serving.Verify(x509.VerifyOptions{Roots: roots(t, d, ClusterCA), DNSName: host}); err != nil {
			t.Errorf("verify serving certificate for %s: %v", host, err)
		}
	}
	if !slices.Equal(serving.ExtKeyUsage, serverAuth) {
		t.Errorf("serving certificate: got usages %v, want server only", serving.ExtKeyUsage)
	}

	if err := Redirect(dir, "https://127.0.0.1:2"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(out, NodeKubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:2" {
		t.Errorf("server after Redirect: got %s, want https://127.0.0.1:2", config.Host)
	}
	client, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	if s := client.Leaf.Subject; s.CommonName != "system:node:vk-0" || !slices.Equal(s.Organization, []string{"system:nodes"}) {
		t.Errorf("client certificate: got %v, want system:node:vk-0 in system:nodes", s)
	}
}

func TestIssueRefusesNoUsage(t *testing.T) {
	authority, err := NewAuthority("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Issue(Request{CommonName: "x"}); err == nil {
		t.Error("got a certificate without any usage, which is valid for every usage")
	}
}
