// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/virtual-kubelet/virtual-kubelet/cli/internal/doctor"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// kubeconfigOf returns a kubeconfig with a client certificate for name, and the path of that.
func kubeconfigOf(t *testing.T, name string) (kubeconfig, certPath string) {
	t.Helper()
	certPath, keyPath := testpki.New(t).Issue(t, name)
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificate: certPath, ClientKey: keyPath}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file, certPath
}

// TestCredentialsOfAnotherNodeEndTheProgram at once, in the words of the doctor: the API server would refuse every request.
func TestCredentialsOfAnotherNodeEndTheProgram(t *testing.T) {
	kubeconfig, _ := kubeconfigOf(t, "system:node:other")
	var stdout, stderr bytes.Buffer
	code := messageProgram.execute(t.Context(), strings.Fields("--provider empty --disable-kubelet-api --nodename n1 --kubeconfig "+kubeconfig), &stdout, &stderr)
	const want = "vk: the credentials belong to node other, and this node is n1: a node may write only its own objects: set --nodename other, or use the credentials of system:node:n1\n"
	if code != 1 || !strings.HasSuffix(stderr.String(), want) || strings.Contains(stderr.String(), "level=ERROR") {
		t.Errorf("got %d, %s\nwant %s", code, &stderr, want)
	}
	for _, good := range []string{"system:node:n1", "system:serviceaccount:a:b", "admin"} {
		kubeconfig, _ := kubeconfigOf(t, good)
		if err := (&options{NodeName: "n1", Kubeconfig: kubeconfig}).checkIdentity(); err != nil {
			t.Errorf("%s is refused: %v", good, err)
		}
	}
}

// TestEndingCertificatesAreTold once each, with the time and what to do: the client certificate, that of the kubelet API and its authorities.
func TestEndingCertificatesAreTold(t *testing.T) {
	defer func(l log.Logger) { log.L = l }(log.L)
	r, err := resolveWith(t, []string{"--disable-kubelet-api"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.startLogging(&out); err != nil {
		t.Fatal(err)
	}
	kubeconfig, certPath := kubeconfigOf(t, "system:node:n1")
	o := &options{NodeName: "n1", Kubeconfig: kubeconfig, TLSCertFile: certPath, ClientCAFile: certPath}
	pem, err := os.ReadFile(certPath)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.ParseCertsPEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	all := o.ownCertificates()
	if len(all) != 3 {
		t.Fatalf("%d certificates are watched, want 3", len(all))
	}
	for _, c := range all {
		testLifeOf(t, c, certs[0], &out)
	}
}

func testLifeOf(t *testing.T, c *ownCertificate, one *x509.Certificate, out *bytes.Buffer) {
	t.Helper()
	end := one.NotAfter.Format(time.RFC3339)
	for _, tc := range []struct {
		at   time.Time
		want []string // parts of the one line; none: nothing is said
	}{
		{one.NotBefore.Add(-time.Second), []string{"level=ERROR", c.what, "is not valid before"}},
		{one.NotBefore, []string{"level=INFO", "was renewed"}},
		{one.NotBefore.Add(time.Second), nil},
		{doctor.LateRenewal(one), []string{"level=WARN", c.what, "expires in", end, c.fix}},
		{doctor.LateRenewal(one).Add(time.Second), nil},
		{one.NotAfter, []string{"level=ERROR", c.what, "expired at " + end, c.fix}},
		{one.NotAfter.Add(24 * time.Hour), nil},
	} {
		out.Reset()
		if wait := c.look(t.Context(), tc.at); wait <= 0 || wait > lookAtCertificates {
			t.Errorf("%s at %v: it is looked at again after %v", c.what, tc.at, wait)
		}
		if lines := strings.Count(out.String(), "\n"); lines != min(len(tc.want), 1) {
			t.Errorf("%s at %v: got %s", c.what, tc.at, out)
		}
		for _, part := range tc.want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s at %v: got %s, want it to have %s", c.what, tc.at, out, part)
			}
		}
	}
}
