// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	stdlog "log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

var quiet = stdlog.New(io.Discard, "", 0)

func port(p int) string { return strconv.Itoa(p) }

type backend func(ctx context.Context) error

func (b backend) Ping(ctx context.Context) error { return b(ctx) }

func (w *world) provider(ping backend) {
	w.Provider = func(context.Context, kubernetes.Interface) (Pinger, error) { return ping, nil }
}

func TestNothingIsWrong(t *testing.T) {
	w := newWorld(t)
	w.node = registered(w.Port)
	w.provider(func(context.Context) error { return nil })
	r := w.examine()
	if r.ExitCode() != 0 || len(r.Findings) > 0 || len(r.Unknown) > 0 {
		t.Errorf("got %+v", r)
	}
	for _, name := range []string{"api-server", "clock", "identity", "rights", "webhook-authentication", "certificate-requests", "lease",
		"serving-certificate", "port", "reachable", "provider"} {
		if !slices.Contains(r.Passed, name) {
			t.Errorf("check %s did not pass: skipped %v", name, r.Skipped)
		}
	}
}

// Pods for other virtual kubelets have nodeSelector {kubernetes.io/role: agent, type: virtual-kubelet}. Sources:
// github.com/virtual-kubelet/nomad, README.md; Microsoft's guide for virtual nodes of AKS.
func TestPublishedD12LabelThatANodeMayNotSetIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		seed func(*world)
		said bool
	}{
		"a node without it":         {func(*world) {}, true},
		"a node that is not there":  {func(w *world) { w.node = nil }, true},
		"an administrator's label":  {func(w *world) { w.node.Labels = map[string]string{"kubernetes.io/role": "agent"} }, false},
		"a service account sets it": {func(w *world) { w.user = "system:serviceaccount:vk:vk" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node = registered(w.Port)
			w.provider(func(context.Context) error { return nil })
			tc.seed(w)
			r := w.examine()
			var text strings.Builder
			if err := r.Text(&text); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(text.String(), "kubectl label node n1 kubernetes.io/role=agent"); got != tc.said || r.ExitCode() != 0 {
				t.Errorf("said %t, exit code %d, want %t and 0:\n%s", got, r.ExitCode(), tc.said, text.String())
			}
		})
	}
}

// advising is a backend whose advice concerns a program that other projects maintain.
type advising struct{ backend }

func (advising) Advise(context.Context) ([]string, []Advice) {
	return []string{"/bin/r: r version 1"}, []Advice{{"r has CVE-1", "install r 2"}}
}

func TestProgramsOfTheProviderAreNamed(t *testing.T) {
	w := newWorld(t)
	w.node = registered(w.Port)
	w.Provider = func(context.Context, kubernetes.Interface) (Pinger, error) {
		return advising{func(context.Context) error { return nil }}, nil
	}
	r := w.examine()
	if len(r.Findings) != 1 || r.Findings[0] != (Finding{"provider", Warning, "r has CVE-1", "install r 2"}) {
		t.Errorf("got %+v, want the advice as a warning", r.Findings)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "/bin/r: r version 1") {
		t.Errorf("got %v and %q, want the version", err, text.String())
	}
}

// TestEveryMisconfigurationIsFound breaks one setting at a time. The doctor reports only this setting, with its cause and its remedy.
func TestEveryMisconfigurationIsFound(t *testing.T) {
	for _, tc := range []struct {
		name                string
		seed                func(w *world)
		check, problem, fix string
	}{
		{"wrong setting", func(w *world) {
			w.Problems = []Problem{{errors.New("--taint-effect \"Never\": want NoSchedule"), "environment VKUBELET_TAINT_EFFECT"}}
		}, "configuration", `--taint-effect "Never"`, "environment VKUBELET_TAINT_EFFECT"},
		{"no address", func(w *world) { w.NodeIP = "" }, "configuration", "--node-ip is not set", "status.podIP"},
		{"API server does not run", func(w *world) {
			w.kubeconfig.Clusters["test"].Server = "https://127.0.0.1:" + port(w.Port) // the port is free, so no program listens
		}, "api-server", "refuses connections", "see that the API server runs"},
		{"API server without a name", func(w *world) { w.kubeconfig.Clusters["test"].Server = "https://no-such-host.invalid:6443" },
			"api-server", "name that cannot be resolved", "DNS"},
		{"another authority", func(w *world) { w.kubeconfig.Clusters["test"].CertificateAuthorityData = testpki.New(w.T).PEM },
			"api-server", "certificate of an unknown authority", "certificate-authority-data"},
		{"API server's certificate expired", func(w *world) { w.serving = certificate(-2*time.Hour, -time.Hour, "127.0.0.1") },
			"api-server", "a certificate that has expired", "renew the API server's certificate"},
		{"API server's certificate for other names", func(w *world) { w.serving = certificate(-time.Hour, time.Hour, "192.0.2.1") },
			"api-server", "certificate for other names", "tls-server-name"},
		{"wrong scheme", func(w *world) {
			l := listen(w.T, "127.0.0.1:0")
			go speakHTTP(l)
			w.kubeconfig.Clusters["test"].Server = "https://" + l.Addr().String()
		}, "api-server", "does not speak TLS", "scheme"},
		{"wrong token", func(w *world) { w.token = "other" }, "api-server", "(401)", "renew the token"},
		{"clocks apart", func(w *world) { w.ahead = -time.Minute }, "clock", "ahead of the API server's", "time server"},
		{"another node's credentials", func(w *world) { w.user = "system:node:n2" }, "identity", "credentials belong to node n2", "set --nodename n2"},
		{"no credentials", func(w *world) { w.user = "system:anonymous" }, "identity", "system:anonymous", "put a client certificate or a token"},
		{"no right to heartbeats", func(w *world) { w.denied = "update leases" }, "rights",
			"system:node:n1 may not update leases (coordination.k8s.io) in kube-node-lease, which is there so that the node has a heartbeat", "ClusterRole"},
		{"no right to Secrets", func(w *world) { w.user, w.denied = "system:serviceaccount:vk:vk", "get secrets" }, "rights",
			"may not get secrets, which is there so that containers get variables from Secrets", "ClusterRole"},
		{"tokens cannot be reviewed", func(w *world) { w.denied = "create tokenreviews" }, "webhook-authentication", "callers with a token are known", "system:auth-delegator"},
		{"permissions cannot be reviewed", func(w *world) { w.denied = "create subjectaccessreviews" }, "webhook-authentication", "callers are allowed what they may", "system:auth-delegator"},
		{"client certificate expired", func(w *world) {
			auth := w.kubeconfig.AuthInfos["test"]
			auth.ClientCertificate, auth.ClientKey = w.files(certificate(-2*time.Hour, -time.Hour, "127.0.0.1"))
		}, "client-certificate", "expired at", "renew it"},
		{"request for a certificate pending", func(w *world) { w.request = w.csr(certificatesv1.KubeletServingSignerName) },
			"certificate-requests", "csr-1 for a certificate of kubernetes.io/kubelet-serving waits for approval since 1h0m", "kubectl certificate approve csr-1"},
		{"request for a certificate denied", func(w *world) {
			w.request = w.csr(certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Policy", Message: "unknown machine",
			})
		}, "certificate-requests", "was denied: Policy: unknown machine", "delete the request"},
		{"a twin", func(w *world) { w.lease = held("elsewhere") }, "lease", "process 7 on host elsewhere acts for node n1", "stop the other one"},
		{"serving certificate missing", func(w *world) { w.CertFile = filepath.Join(w.TempDir(), "none.pem") }, "serving-certificate", "none.pem: no such file", "--tls-cert-file"},
		{"key of another certificate", func(w *world) { _, w.KeyFile = w.ca.Issue(w.T, "n1") }, "serving-certificate", "cannot be used together", "key that the certificate was issued for"},
		{"serving certificate expired", func(w *world) { w.CertFile, w.KeyFile = w.files(certificate(-2*time.Hour, -time.Hour, "127.0.0.1")) },
			"serving-certificate", "expired at", "renew"},
		{"serving certificate ends soon", func(w *world) { w.CertFile, w.KeyFile = w.files(certificate(-100*time.Hour, time.Hour, "127.0.0.1")) },
			"serving-certificate", "expires in ", "renew"},
		{"serving certificate for another address", func(w *world) { w.CertFile, w.KeyFile = w.files(certificate(-time.Hour, time.Hour, "192.0.2.1")) },
			"serving-certificate", "not for the address of the node", "issue it with the IP address 127.0.0.1"},
		{"authorities that are none", func(w *world) { w.ClientCAFile = w.KeyFile }, "client-authorities", "--client-ca-file", "PEM file with the authority"},
		{"port taken", func(w *world) { listen(w.T, "127.0.0.1:"+port(w.Port)) }, "port", "in use by another program", "choose another --port"},
		{"address of another machine", func(w *world) { w.ListenAddress = "192.0.2.1" }, "port", "no address of this machine", "--listen-address"},
		{"somebody else at the address", func(w *world) {
			w.node = registered(w.Port)
			other := newWorld(w.T)
			other.ca = w.ca
			other.examine()
			w.proxied = strings.TrimPrefix(other.kubeconfig.Clusters["test"].Server, "https://")
		}, "reachable", "does not reach the kubelet API", "--client-ca-file"},
		{"nobody at the address", func(w *world) {
			w.node = registered(w.Port)
			l := listen(w.T, "127.0.0.1:0")
			w.proxied = l.Addr().String()
			_ = l.Close()
		}, "reachable", "connection refused", "--listen-address includes it"},
		{"certificate of another authority", func(w *world) {
			w.node = registered(w.Port)
			w.CertFile, w.KeyFile = testpki.New(w.T).Issue(w.T, "n1")
		}, "reachable", "unknown authority", "--kubelet-certificate-authority"},
		{"provider cannot be made", func(w *world) {
			w.Provider = func(context.Context, kubernetes.Interface) (Pinger, error) { return nil, errors.New("no credentials") }
		}, "provider", "cannot be made: no credentials", "--provider-config"},
		{"backend is down", func(w *world) { w.provider(func(context.Context) error { return errors.New("maintenance") }) },
			"provider", "is not well: maintenance", "way there"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.seed(w)
			r := w.examine()
			if len(r.Findings) != 1 || (r.ExitCode() == 1) != (r.Findings[0].Severity == Error) {
				t.Fatalf("got %d findings, want one: %+v; unknown: %v", len(r.Findings), r.Findings, r.Unknown)
			}
			f := r.Findings[0]
			if f.Check != tc.check || !strings.Contains(f.Problem, tc.problem) || !strings.Contains(f.Fix, tc.fix) {
				t.Errorf("got  %+v\nwant {%s: %s; fix: %s}", f, tc.check, tc.problem, tc.fix)
			}
		})
	}
}

// TestBackendThatHangs runs this one check only, so that its short time limit does not apply to other checks.
func TestBackendThatHangs(t *testing.T) {
	for _, hangs := range []backend{
		func(context.Context) error { select {} },
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		e := &exam{report: &Report{}, Config: Config{Timeout: 10 * time.Millisecond, Provider: func(context.Context, kubernetes.Interface) (Pinger, error) { return hangs, nil }}}
		e.do(t.Context(), check{name: "provider", run: checkProvider})
		if f := e.report.Findings; len(f) != 1 || !strings.Contains(f[0].Problem, "did not answer within 10ms") || !strings.Contains(f[0].Fix, "see that the backend runs") {
			t.Errorf("got %+v", f)
		}
	}
}

func TestKubeconfigThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("clusters: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "none"): "this is no pod of a cluster", broken: "cannot be used"} {
		r := Run(t.Context(), Config{NodeName: "n1", Kubeconfig: path})
		if len(r.Findings) != 1 || r.Findings[0].Check != "kubeconfig" || !strings.Contains(r.Findings[0].Problem, want) {
			t.Errorf("%s: got %+v, want %s", path, r.Findings, want)
		}
	}
}

// TestBootstrap: a node that has only its bootstrap credentials has no findings, and its rights are not checked.
func TestBootstrap(t *testing.T) {
	w := newWorld(t)
	w.BootstrapKubeconfig, w.RequestsCertificate = w.Kubeconfig, true
	w.user, w.denied = "system:bootstrap:abcdef", "create nodes"
	w.CertFile, w.KeyFile, w.node = "", "", registered(w.Port)
	kubeconfig := filepath.Join(t.TempDir(), "none")
	r := w.examineWith(kubeconfig)
	if len(r.Findings) > 0 || len(r.Unknown) > 0 || slices.Contains(r.Passed, "rights") {
		t.Errorf("got %+v, want nothing, and the rights not looked at", r)
	}
}

// TestTheNodeRunsHere: the node itself uses the port and holds the lease, so neither is a finding.
func TestTheNodeRunsHere(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	w := newWorld(t)
	w.lease = held(host)
	listen(t, "127.0.0.1:"+port(w.Port))
	if r := w.examine(); len(r.Findings) > 0 {
		t.Errorf("got %+v, want nothing", r.Findings)
	}
	// When no process holds the lease, a program on the port is a finding.
	w.lease.Annotations[holderAnnotation] = ""
	if r := w.examine(); len(r.Findings) != 1 || r.Findings[0].Check != "port" {
		t.Errorf("got %+v, want the port", r.Findings)
	}
}

func TestReports(t *testing.T) {
	r := &Report{Node: "n1", Findings: []Finding{{"port", Error, "is in use", "choose another"}}, Passed: []string{"clock"},
		Skipped: []Note{{"lease", "no name"}}, Unknown: []Note{{"rights", "timeout"}}}
	var text, encoded bytes.Buffer
	if err := errors.Join(r.Text(&text), r.JSON(&encoded)); err != nil {
		t.Fatal(err)
	}
	want := "✓ clock\n- lease: not checked: no name\n? rights: cannot be checked: timeout\n✗ port: is in use\n  fix: choose another\n\nnode n1: 1 wrong\n"
	if text.String() != want {
		t.Errorf("got %s\nwant %s", &text, want)
	}
	var back Report
	if err := json.Unmarshal(encoded.Bytes(), &back); err != nil || back.Findings[0] != r.Findings[0] {
		t.Errorf("got %+v, %v", back, err)
	}
	for _, tc := range []struct {
		r    Report
		want int
	}{{*r, 1}, {Report{Findings: []Finding{{Severity: Warning}}}, 0}, {Report{Findings: []Finding{{Severity: Warning}}, Unknown: r.Unknown}, 2}, {Report{Unknown: r.Unknown}, 2}, {Report{Skipped: r.Skipped}, 0}} {
		if got := tc.r.ExitCode(); got != tc.want {
			t.Errorf("%+v: got %d, want %d", tc.r, got, tc.want)
		}
	}
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// speakHTTP answers every connection with HTTP, without TLS.
func speakHTTP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		_ = c.Close()
	}
}
