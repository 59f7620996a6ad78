// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/virtual-kubelet/virtual-kubelet/cli/internal/doctor"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// kubeconfigOf returns a kubeconfig with a client certificate for name, and the path of the certificate.
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

// TestCredentialsOfAnotherNodeEndTheProgram holds that the program fails at once, with the doctor's message: the API server would refuse
// every request.
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

// TestStartHasOneLine holds that a successful start logs one line, and a second line when the node is ready.
func TestStartHasOneLine(t *testing.T) {
	kubeconfig := startAPIServer(t, &apiServer{objects: map[string]runtime.Object{}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines, done := start(ctx, "--provider=empty", "--kubeconfig="+kubeconfig, "--nodename=n1", "--disable-kubelet-api", "--metrics-addr=127.0.0.1:0", "--log-format=json")
	lines.waitFor(t, "Node is ready", done)
	got := regexp.MustCompile(`"time":"[^"]*",|"commit":"[^"]*",`).ReplaceAllString(lines.String(), "")
	const want = `{"level":"INFO","msg":"Starting","provider":"empty","address":"none","identity":"unknown","node":"n1","version":"v9"}
{"level":"INFO","msg":"Node is ready","provider":"empty","node":"n1"}
`
	if got != want {
		t.Errorf("the log is\n%s\nwant\n%s", got, want)
	}
	cancel()
	<-done
}

// TestIdentityIsReadFromTheCredentials holds that the identity is the name in the certificate or in the token.
func TestIdentityIsReadFromTheCredentials(t *testing.T) {
	const account = "system:serviceaccount:vk:node"
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+account+`"}`)) + ".c2ln"
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*clientcmdapi.AuthInfo){
		"system:node:n1": func(*clientcmdapi.AuthInfo) {},
		account:          func(a *clientcmdapi.AuthInfo) { *a = clientcmdapi.AuthInfo{Token: token} },
		account + " ":    func(a *clientcmdapi.AuthInfo) { *a = clientcmdapi.AuthInfo{TokenFile: tokenFile} },
		"unknown":        func(a *clientcmdapi.AuthInfo) { *a = clientcmdapi.AuthInfo{Token: "opaque"} },
	} {
		file, _ := kubeconfigOf(t, "system:node:n1")
		config, err := clientcmd.LoadFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		change(config.AuthInfos["test"])
		if err := clientcmd.WriteToFile(*config, file); err != nil {
			t.Fatal(err)
		}
		if got := (&options{NodeName: "n1", Kubeconfig: file}).identity(); got != strings.TrimSpace(want) {
			t.Errorf("the identity is %q, want %q", got, want)
		}
	}
	if got := (&options{NodeName: "n1", Kubeconfig: filepath.Join(t.TempDir(), "none")}).identity(); got != "unknown" {
		t.Errorf("the identity without credentials is %q", got)
	}
}

// TestEndingCertificatesAreTold holds that each certificate that ends soon is logged once, with the time and the action to take: the client
// certificate, the serving certificate and the client CA.
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
		want []string // parts of the one line; none: nothing is logged
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
