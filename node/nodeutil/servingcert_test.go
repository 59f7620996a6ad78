// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certrequest"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// asking is a node on loopback that requests its serving certificate.
type asking struct {
	*Node
	client *fake.Clientset
	signer *testpki.Signer
	lines  *lineLogger
	url    string
	trust  *tls.Config
}

func startAsking(t *testing.T, mode certificatesv1.RequestConditionType, renew func(*x509.Certificate) time.Time) *asking {
	t.Helper()
	outsideCluster(t)
	ca := testpki.New(t)
	a := &asking{client: fake.NewClientset(), lines: &lineLogger{}, trust: ca.ClientConfig(t, nil, "")}
	a.signer = ca.Attach(a.client)
	a.signer.Answer(t, mode, time.Minute)
	var err error
	a.Node, err = NewNode("n1", newMemory().asProvider, WithClient(a.client), WithServingCertificateRequests(""), func(cfg *NodeConfig) error {
		cfg.HTTPListenAddr, cfg.Handler, cfg.renewCertificate = "127.0.0.1:0", WithAuth(NoAuth(), hello), renew
		cfg.NodeSpec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(a.lines.into(context.Background()))
	go func() { _ = a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-a.Done()
		if err := a.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want that the context was cancelled", err)
		}
	})
	if err := a.WaitReady(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	a.url = fmt.Sprintf("https://127.0.0.1:%d", a.get(t).Status.DaemonEndpoints.KubeletEndpoint.Port)
	return a
}

func (a *asking) get(t *testing.T) *corev1.Node {
	t.Helper()
	n, err := a.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (a *asking) answers(t *testing.T) bool {
	t.Helper()
	status, _ := fetch(t, clientOf(a.trust), a.url, "")
	return status == 200
}

func (a *asking) condition(t *testing.T) (found corev1.NodeCondition) {
	t.Helper()
	for _, c := range a.get(t).Status.Conditions {
		if c.Type == ServingCertificatePending {
			found = c
		}
	}
	return found
}

// TestSecurityB1ServingCertificateIsRotatedUnderLoad: the server takes ten certificates, one after the other,
// without a restart and without a failed request. Each certificate comes from a certificate request.
func TestSecurityB1ServingCertificateIsRotatedUnderLoad(t *testing.T) {
	a := startAsking(t, certificatesv1.CertificateApproved, func(leaf *x509.Certificate) time.Time {
		return time.Now().Add(50 * time.Millisecond)
	})
	until(t, "the first certificate is served", func() bool { return a.answers(t) })
	l := startLoad(t, a.url, a.trust)
	seen := map[string]bool{}
	until(t, "ten further certificates are served", func() bool {
		seen[served(t, a.url, a.trust)] = true
		return len(seen) > rotations
	})
	l.stop()
	t.Logf("%d requests", l.sent.Load())
	request := a.signer.Requests()[0]
	if request.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		t.Errorf("asked %s", request.Spec.SignerName)
	}
	if ttl := metricOf(t, "kubelet_certificate_manager_server_ttl_seconds"); ttl < 1 || ttl > 60 {
		t.Errorf("TTL: got %v, want up to the minute that certificates are good for", ttl)
	}
}

// TestSecurityB1NewAddress: a node with a new address requests a certificate for this address.
func TestSecurityB1NewAddress(t *testing.T) {
	a := startAsking(t, certificatesv1.CertificateApproved, nil)
	until(t, "the first certificate is served", func() bool { return a.answers(t) })
	n := a.get(t)
	n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "192.0.2.7"})
	if err := a.naive.UpdateStatus(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	until(t, "the certificate is for the new address", func() bool {
		ips := a.serving.Current().Leaf.IPAddresses
		return len(ips) == 2 && ips[1].Equal(net.ParseIP("192.0.2.7"))
	})
}

// TestSecurityB3DeniedRequestIsTold: a denied request causes a condition, an event and one line in the log. The
// server answers no connection meanwhile.
func TestSecurityB3DeniedRequestIsTold(t *testing.T) {
	a := startAsking(t, certificatesv1.CertificateDenied, nil)
	until(t, "the node has the condition", func() bool { return a.condition(t).Status == corev1.ConditionTrue })
	c := a.condition(t)
	for _, want := range []string{"csr-", "denied (ByTest: the test wants it)", "kubectl certificate approve", "answers nobody"} {
		if c.Reason != "Denied" || !strings.Contains(c.Message, want) {
			t.Errorf("condition: got %s: %s, want Denied with %q", c.Reason, c.Message, want)
		}
	}
	until(t, "there is an event", func() bool {
		events, err := a.client.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
		denied := slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.Reason != "CertificateDenied" }) // the node has other events too
		return err == nil && len(denied) == 1 && denied[0].InvolvedObject.Name == "n1"
	})
	lax := &tls.Config{InsecureSkipVerify: true}
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(a.url, "https://"), lax); err == nil {
		t.Errorf("the server shows a certificate of %s that nobody granted", conn.ConnectionState().PeerCertificates[0].Issuer)
		_ = conn.Close()
	}
	until(t, "another request is made", func() bool { return len(a.signer.Requests()) > 1 })
	if n := strings.Count(a.lines.text(), "warn certificate signing request csr-"); n != 1 {
		t.Errorf("the log says %d times what to do, want once:\n%s", n, a.lines.text())
	}
	a.signer.Answer(t, certificatesv1.CertificateApproved, time.Minute)
	until(t, "the server answers", func() bool { return a.answers(t) })
	until(t, "the condition has gone", func() bool { return a.condition(t).Type == "" })
}

// TestPendingRequestEndsWithRun: a certificate request that is never granted leaves no goroutine behind.
func TestPendingRequestEndsWithRun(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("node", func(t *testing.T) {
		a := startAsking(t, "", nil)
		until(t, "there is a request", func() bool { return len(a.signer.Requests()) > 0 })
	})
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func TestWhatToDoAboutACertificate(t *testing.T) {
	c := &certNotices{what: "serving", without: "nothing works"}
	expires := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, state := range map[string]certrequest.State{
		"run: kubectl certificate approve csr-1 (until then nothing works)": {Reason: certrequest.Pending, Request: "csr-1"},
		"give it one (the certificate in use ends at 2030-01-02T03:04:05Z)": {Reason: certrequest.Nameless, Expires: expires},
		"cannot be had: no; trying again":                                   {Reason: certrequest.Failed, Err: errors.New("no")},
	} {
		if got := c.message(state); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", state.Reason, got, want)
		}
	}
}

func TestOneSourceOfTheServingCertificate(t *testing.T) {
	outsideCluster(t)
	handler := func(cfg *NodeConfig) error { cfg.Handler = hello; return nil }
	files := WithTLSConfig(WithKeyPairFiles(testpki.New(t).Issue(t, "n1")))
	_, err := NewNode("n1", newMemory().asProvider, WithClient(fake.NewClientset()), files, handler, WithServingCertificateRequests(""))
	if err == nil || !strings.Contains(err.Error(), "choose one way") {
		t.Errorf("files and requests: got %v", err)
	}
	_, err = NewFleet([]string{"a", "b"}, newMemory().asProvider, WithClient(fake.NewClientset()), handler, WithServingCertificateRequests(""))
	if err == nil || !strings.Contains(err.Error(), "give a fleet") {
		t.Errorf("a fleet: got %v", err)
	}
}

func metricOf(t *testing.T, name string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
