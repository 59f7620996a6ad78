// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/certificate"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

const (
	approve = certificatesv1.CertificateApproved
	deny    = certificatesv1.CertificateDenied
	nobody  = certificatesv1.RequestConditionType("")
)

// script is a manager of a serving certificate in fake time.
type script struct {
	*testing.T
	*Manager
	signer    *testpki.Signer
	addresses atomic.Pointer[[]corev1.NodeAddress]

	mu   sync.Mutex
	told []string // guarded by mu; since the last check
	late []string // guarded by mu; reports after the certificate was obtained
}

// run calls steps while a manager runs.
func run(t *testing.T, mode certificatesv1.RequestConditionType, steps func(s *script)) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		s := &script{T: t, signer: testpki.New(t).Attach(client)}
		s.signer.Answer(t, mode, time.Hour)
		s.at("192.0.2.1")
		var err error
		s.Manager, err = New(Config{
			Signer: certificatesv1.KubeletServingSignerName, Usages: ServingUsages,
			Template: func() *x509.CertificateRequest { return ServingTemplate("n1", *s.addresses.Load()) },
			Client:   func(bool) (kubernetes.Interface, error) { return client, nil },
			Store:    InMemory(), Metrics: Serving,
			Tell: func(_ context.Context, state State) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.told = append(s.told, text(state))
				select {
				case <-s.Obtained():
					s.late = append(s.late, string(state.Reason))
				default:
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Manager.Run(ctx) }()
		synctest.Wait()
		steps(s)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func text(state State) string {
	return fmt.Sprintf("%s request=%t error=%t current=%t", state.Reason, state.Request != "", state.Err != nil, !state.Expires.IsZero())
}

func (s *script) at(ips ...string) {
	addresses := []corev1.NodeAddress{}
	for _, ip := range ips {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	s.addresses.Store(&addresses)
}

func (s *script) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// says checks the reports since the last call.
func (s *script) says(want ...string) {
	s.Helper()
	if told := s.take(); !slices.Equal(told, want) {
		s.Errorf("told:\n%s\nwant:\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

func (s *script) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	return told
}

const granted = "Granted request=false error=false current=true"

func TestRenewedInTime(t *testing.T) {
	run(t, approve, func(s *script) {
		s.pass(time.Second)
		s.says(granted)
		for range 10 {
			before := s.Current()
			s.pass(time.Until(before.Leaf.NotBefore.Add(40 * time.Minute)))
			if s.Current() != before {
				t.Error("the certificate was renewed before 70 % of its life had passed")
			}
			s.pass(15 * time.Minute)
			if now := s.Current(); now == before || now == nil {
				t.Error("the certificate was not renewed when 90 % of its life had passed")
			}
			s.says(granted)
		}
		request := s.signer.Requests()[0]
		if request.Spec.SignerName != "kubernetes.io/kubelet-serving" || !slices.Equal(request.Spec.Usages, ServingUsages) {
			t.Errorf("request: got %+v", request.Spec)
		}
		leaf := s.Current().Leaf
		if leaf.Subject.CommonName != "system:node:n1" || !slices.Equal(leaf.Subject.Organization, []string{"system:nodes"}) ||
			len(leaf.IPAddresses) != 1 || leaf.IPAddresses[0].String() != "192.0.2.1" {
			t.Errorf("certificate: got %s for %v", leaf.Subject, leaf.IPAddresses)
		}
	})
}

// TestCertificateIsToldFirst: a caller that waits for the certificate may stop the process next. So the report,
// and everything that it writes, comes before Obtained.
func TestCertificateIsToldFirst(t *testing.T) {
	run(t, approve, func(s *script) {
		<-s.Obtained()
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.told) == 0 || len(s.late) > 0 {
			t.Errorf("of %q, the certificate was obtained before %q was told", s.told, s.late)
		}
	})
}

// TestCertificateThatIsDatedBack: a new certificate may already be past its time of renewal. It is used for half
// of its remaining life.
func TestCertificateThatIsDatedBack(t *testing.T) {
	leaf := &x509.Certificate{NotBefore: time.Now().Add(-5 * time.Minute), NotAfter: time.Now().Add(10 * time.Second)}
	earliest := time.Now().Add(5 * time.Second)
	if got := renewAt(leaf, earliest); !got.Equal(earliest) {
		t.Errorf("renewed at %v, want %v", got, earliest)
	}
	if got := renewAt(leaf, time.Time{}); !got.Before(time.Now()) {
		t.Errorf("a stored one is renewed at %v, want at once", got)
	}
}

// TestStoreInFiles: the store has one key on disk, and only its owner can read it.
func TestStoreInFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	store, err := InFiles(dir, "kubelet-client")
	if err != nil {
		t.Fatal(err)
	}
	var none *certificate.NoCertKeyError
	if _, err := store.Current(); !errors.As(err, &none) {
		t.Errorf("an empty store: got %v", err)
	}
	ca := testpki.New(t)
	for range 2 {
		certPath, keyPath := ca.Issue(t, "n1")
		cert, certErr := os.ReadFile(certPath)
		key, keyErr := os.ReadFile(keyPath)
		fresh, err := store.Update(cert, key)
		if err := errors.Join(certErr, keyErr, err); err != nil {
			t.Fatal(err)
		}
		if stored, err := store.Current(); err != nil || !bytes.Equal(stored.Certificate[0], fresh.Certificate[0]) {
			t.Errorf("what is stored is another certificate, or error %v", err)
		}
		<-time.After(1100 * time.Millisecond) // the names of files have seconds in them
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("in the directory are %v, want one file and a link to it (%v)", files, err)
	}
	if info, err := os.Stat(store.CurrentPath()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, error %v, want mode 0600", info, err)
	}
}

func TestNobodyApproves(t *testing.T) {
	run(t, nobody, func(s *script) {
		s.pass(patience - time.Second)
		s.says()
		s.pass(maxLook + time.Second)
		s.says("Pending request=true error=false current=false")
		s.pass(24 * time.Hour)
		if n := len(s.signer.Requests()); n != 1 || s.Current() != nil {
			t.Errorf("after a day: %d requests, want the first one to stay", n)
		}
		s.signer.Answer(t, approve, time.Hour)
		s.pass(2 * maxLook)
		s.says(granted)
	})
}

// TestCertificateThatHasEnded: a signer may give an expired certificate, or a clock may be wrong. The next
// request comes after a pause.
func TestCertificateThatHasEnded(t *testing.T) {
	run(t, nobody, func(s *script) {
		s.signer.Answer(t, approve, -time.Minute)
		s.pass(time.Hour)
		if n := len(s.signer.Requests()); n < 20 || n > 60 {
			t.Errorf("%d requests in an hour, want about one in %s", n, maxRetry)
		}
		if s.Current() != nil {
			t.Error("a certificate is used that has ended")
		}
		s.take()
		s.signer.Answer(t, approve, time.Hour)
		s.pass(2 * maxRetry)
		s.says(granted)
	})
}

// TestCertificateOfAnotherNode: a stored certificate for another node name is not used.
func TestCertificateOfAnotherNode(t *testing.T) {
	pair, err := tls.LoadX509KeyPair(testpki.New(t).Issue(t, "system:node:other"))
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]bool{"other": true, "n1": false} {
		address := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
		k, err := New(Config{
			Template: func() *x509.CertificateRequest { return ServingTemplate(node, address) },
			Store:    &memory{cert: &pair}, Metrics: Serving,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Current() != nil; got != want {
			t.Errorf("node %s: the stored certificate is used: %t, want %t", node, got, want)
		}
		select { // a restart does not wait for the API server
		case <-k.Obtained():
			if !want {
				t.Errorf("node %s has obtained a certificate that it may not use", node)
			}
		default:
			if want {
				t.Errorf("node %s waits for a certificate that it has", node)
			}
		}
	}
}

func TestDeniedAndAskedAgain(t *testing.T) {
	run(t, deny, func(s *script) {
		s.pass(time.Second)
		s.says("Denied request=true error=true current=false")
		s.pass(time.Hour)
		if n := len(s.signer.Requests()); n < 20 || n > 60 {
			t.Errorf("%d requests in an hour of denials, want about one in %s", n, maxRetry)
		}
		s.take()
		s.signer.Answer(t, approve, time.Hour)
		s.pass(2 * maxRetry)
		s.says(granted)
	})
}

func TestDeletedRequestIsMadeAgain(t *testing.T) {
	run(t, nobody, func(s *script) {
		s.pass(time.Minute)
		s.take()
		s.signer.Forget()
		s.signer.Answer(t, approve, time.Hour)
		s.pass(time.Minute)
		s.says("Failed request=true error=true current=false", granted)
	})
}

// TestRenewalThatNobodyApproves: while the renewal is not approved, the old certificate is used until it expires, and no certificate afterwards.
func TestRenewalThatNobodyApproves(t *testing.T) {
	run(t, approve, func(s *script) {
		s.pass(time.Second)
		s.signer.Answer(t, nobody, time.Hour)
		s.take()
		s.pass(58 * time.Minute)
		s.says("Pending request=true error=false current=true")
		if s.Current() == nil {
			t.Error("the certificate is not used to its end")
		}
		s.pass(3 * time.Minute)
		s.says("Pending request=true error=false current=false")
		if s.Current() != nil {
			t.Error("a certificate is used after its end")
		}
	})
}

func TestOtherAddresses(t *testing.T) {
	run(t, approve, func(s *script) {
		s.pass(time.Second)
		s.at("192.0.2.1", "192.0.2.2")
		s.Changed()
		s.pass(time.Second)
		if got := s.Current().Leaf.IPAddresses; len(got) != 2 {
			t.Errorf("after a new address: the certificate is for %v", got)
		}
		s.at("192.0.2.1")
		s.Changed()
		s.pass(time.Minute)
		if n := len(s.signer.Requests()); n != 2 {
			t.Errorf("%d requests, want none for an address that went away", n)
		}
		s.signer.Answer(t, nobody, time.Hour)
		s.at("192.0.2.3")
		s.Changed()
		s.pass(time.Minute)
		s.at("192.0.2.4") // while the request for .3 waits
		s.Changed()
		s.pass(time.Second)
		s.signer.Answer(t, approve, time.Hour)
		s.pass(2 * maxLook)
		if got := s.Current().Leaf.IPAddresses; len(got) != 1 || got[0].String() != "192.0.2.4" {
			t.Errorf("the certificate is for %v, want the last address", got)
		}
	})
}

func TestNoAddress(t *testing.T) {
	run(t, approve, func(s *script) {
		s.pass(time.Second)
		s.at()
		s.Changed()
		s.pass(time.Minute)
		s.says(granted, "NoAddress request=false error=false current=true")
	})
}

func TestMetrics(t *testing.T) {
	run(t, approve, func(s *script) {
		s.pass(time.Second)
		if got := gauge(t); got < 3590 || got > 3600 {
			t.Errorf("TTL: got %v, want an hour", got)
		}
	})
	if got := gauge(t); got != -1 {
		t.Errorf("TTL when nothing runs: got %v, want none", got)
	}
}

func gauge(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "kubelet_certificate_manager_server_ttl_seconds" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}
