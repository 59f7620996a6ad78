// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// bootstrapping has the files from which a node with a bootstrap kubeconfig starts.
type bootstrapping struct {
	*testing.T
	dir, bootstrap, kubeconfig string
}

func newBootstrapping(t *testing.T) *bootstrapping {
	outsideCluster(t)
	dir := t.TempDir()
	b := &bootstrapping{T: t, dir: dir, bootstrap: filepath.Join(dir, "bootstrap"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	b.write(b.bootstrap, "https://bootstrap.example", clientcmdapi.AuthInfo{Token: "abcdef.0123456789abcdef"})
	return b
}

func (b *bootstrapping) write(path, server string, user clientcmdapi.AuthInfo) {
	b.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	c.AuthInfos["c"] = &user
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	c.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		b.Fatal(err)
	}
}

func (b *bootstrapping) node(opts ...NodeOpt) (*Node, error) {
	return NewNode("n1", newMemory().asProvider, append([]NodeOpt{
		WithTLSBootstrap(b.bootstrap, filepath.Join(b.dir, "pki")),
		func(cfg *NodeConfig) error { cfg.KubeconfigPath = b.kubeconfig; return nil },
	}, opts...)...)
}

// TestSecurityB4TheTokenIsForAskingOnly: the bootstrap token is used for certificate requests only; the node's
// clients never have it.
func TestSecurityB4TheTokenIsForAskingOnly(t *testing.T) {
	b := newBootstrapping(t)
	n, err := b.node()
	if err != nil {
		t.Fatal(err)
	}
	config := n.clientCert.config
	if config.BearerToken != "" || config.BearerTokenFile != "" || config.Host != "https://bootstrap.example" {
		t.Errorf("clients go to %s with a token of %d bytes, want the server of the bootstrap kubeconfig and none", config.Host, len(config.BearerToken))
	}
	if config.CertFile != filepath.Join(b.dir, "pki", "kubelet-client-current.pem") || config.KeyFile != config.CertFile {
		t.Errorf("certificate file: got %s", config.CertFile)
	}
	if n.clientCert.Current() != nil {
		t.Error("there is a certificate before one was asked for")
	}
	if _, err := os.Stat(b.kubeconfig); !os.IsNotExist(err) {
		t.Errorf("there is a kubeconfig without a certificate: %v", err)
	}
}

// TestSecurityB4KubeconfigOfAnotherHand: the node uses the certificate in a kubeconfig that an administrator
// wrote, and renews it from now on.
func TestSecurityB4KubeconfigOfAnotherHand(t *testing.T) {
	b := newBootstrapping(t)
	if err := os.Remove(b.bootstrap); err != nil {
		t.Fatal(err)
	}
	cert, key := testpki.New(t).Issue(t, "system:node:n1")
	b.write(b.kubeconfig, "https://own.example", clientcmdapi.AuthInfo{ClientCertificate: cert, ClientKey: key})
	n, err := b.node()
	if err != nil {
		t.Fatal(err)
	}
	if current := n.clientCert.Current(); current == nil || current.Leaf.SerialNumber.String() != serialOf(t, cert) || n.clientCert.config.Host != "https://own.example" {
		t.Error("the certificate and the server of the kubeconfig are not used")
	}
	if _, err := n.clientCert.client(true); err != nil {
		t.Errorf("with a certificate, the bootstrap kubeconfig is not needed, but: %v", err)
	}
	if _, err := n.clientCert.client(false); err == nil || !strings.Contains(err.Error(), b.bootstrap) {
		t.Errorf("without either: got %v, want an error that names the file", err)
	}
}

// TestSecurityB4FresherCertificateOfAnotherHand: a kubeconfig with a fresh certificate replaces an expired one.
// The administrator need not know the directory that keeps the old certificate.
func TestSecurityB4FresherCertificateOfAnotherHand(t *testing.T) {
	b := newBootstrapping(t)
	ca := testpki.New(t)
	cert, key := ca.IssueExpired(t, "system:node:n1")
	b.write(b.kubeconfig, "https://own.example", clientcmdapi.AuthInfo{ClientCertificate: cert, ClientKey: key})
	if _, err := b.node(); err != nil {
		t.Fatal(err)
	}
	fresh, key := ca.Issue(t, "system:node:n1")
	b.write(b.kubeconfig, "https://own.example", clientcmdapi.AuthInfo{ClientCertificate: fresh, ClientKey: key})
	n, err := b.node()
	if err != nil {
		t.Fatal(err)
	}
	if current := n.clientCert.Current(); current == nil || current.Leaf.SerialNumber.String() != serialOf(t, fresh) {
		t.Error("the certificate that has ended is kept, in the place of the fresh one")
	}
	b.write(b.kubeconfig, "https://own.example", clientcmdapi.AuthInfo{ClientCertificate: cert, ClientKey: key})
	if _, err := b.node(); err == nil {
		t.Error("a certificate with another's key was taken")
	}
}

func TestBootstrapMistakes(t *testing.T) {
	for want, do := range map[string]func(b *bootstrapping) []NodeOpt{
		"does not exist, and the one to bootstrap with is of no use": func(b *bootstrapping) []NodeOpt { _ = os.Remove(b.bootstrap); return nil },
		"it has no client certificate": func(b *bootstrapping) []NodeOpt {
			b.write(b.kubeconfig, "https://own.example", clientcmdapi.AuthInfo{Token: "t"})
			return nil
		},
		"leave Client and HeartbeatClient to it": func(*bootstrapping) []NodeOpt { return []NodeOpt{WithClient(fake.NewClientset())} },
		"the file to write, is not set": func(*bootstrapping) []NodeOpt {
			return []NodeOpt{func(cfg *NodeConfig) error { cfg.KubeconfigPath = ""; return nil }}
		},
		"want a kubeconfig to bootstrap with": func(*bootstrapping) []NodeOpt { return []NodeOpt{WithTLSBootstrap("", "")} },
	} {
		b := newBootstrapping(t)
		if _, err := b.node(do(b)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestSecurityB4KubeconfigIsWrittenAtOnce: the kubeconfig is readable by its owner only, and is not written
// again when nothing has changed.
func TestSecurityB4KubeconfigIsWrittenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "kubeconfig")
	cluster := &clientcmdapi.Cluster{Server: "https://h", CertificateAuthorityData: []byte("ca"), ProxyURL: "http://proxy.example:3128"}
	if err := saveKubeconfig(path, cluster, "/c"); err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(path)
	if err != nil || first.Mode().Perm() != 0o600 {
		t.Fatalf("got %v, error %v, want mode 0600", first, err)
	}
	if err := saveKubeconfig(path, cluster, "/c"); err != nil {
		t.Fatal(err)
	}
	again, err := os.Stat(path)
	if err != nil || !os.SameFile(first, again) {
		t.Errorf("the same was written again (%v)", err)
	}
	read, kept, user, err := readCluster(path)
	if err != nil || read.Host != "https://h" || string(read.CAData) != "ca" || read.Proxy == nil || kept.ProxyURL != cluster.ProxyURL || user.ClientCertificate != "/c" {
		t.Errorf("read again: got %v, %v, error %v", read, user, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("beside the file are %v (%v)", left, err)
	}
}
