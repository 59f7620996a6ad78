// SPDX-License-Identifier: Apache-2.0

package podcerts

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
)

// signer is an API server with a signer.
type signer struct {
	t        *testing.T
	key      ed25519.PrivateKey
	requests map[string]*asking
	asked    []certapi.Request
	err      error         // of every call
	life     time.Duration // of certificates
	after    time.Duration // time until the decision
	failure  string        // Denied or Failed; "": issued
	stranger bool          // issues certificates for an unknown key
	events   *record.FakeRecorder
	told     map[string]string // keys by purpose and name
}

type asking struct {
	at     time.Time
	answer certapi.Answer
}

// inWorld runs a test with a signer and a manager in a bubble, where time is not real.
func inWorld(t *testing.T, test func(t *testing.T, s *signer, b *Manager)) {
	synctest.Test(t, func(t *testing.T) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		s := &signer{t: t, key: key, requests: map[string]*asking{}, life: 24 * time.Hour, events: record.NewFakeRecorder(10), told: map[string]string{}}
		test(t, s, s.manager())
	})
}

// manager returns a new Manager, as in a new process.
func (s *signer) manager() *Manager {
	return New(Config{
		Requests: s, Recorder: s.events,
		Account: func(_ context.Context, namespace, name string) (types.UID, error) {
			return types.UID(namespace + "-" + name), s.err
		},
		Node: func(context.Context) (string, types.UID, error) { return "n", "node-uid", s.err },
		Remember: func(pod types.UID, purpose, name string, key []byte) {
			s.told[fmt.Sprint(pod, purpose, name)] = string(key)
		},
	})
}

func (s *signer) Ask(_ context.Context, r certapi.Request) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	s.asked = append(s.asked, r)
	name := fmt.Sprint("req-", len(s.asked))
	answer := certapi.Answer{Found: true, Condition: certapi.Issued, BeginRefreshAt: metav1.NewTime(time.Now().Add(s.life / 2))}
	if s.failure != "" {
		answer.Condition, answer.Reason, answer.Message = s.failure, "Because", "of this"
	} else {
		public := r.Key.Public()
		if s.stranger {
			public = s.key.Public()
		}
		answer.Chain = s.sign(public, time.Now(), s.life)
	}
	s.requests[name] = &asking{at: time.Now(), answer: answer}
	return name, nil
}

func (s *signer) Answer(_ context.Context, namespace, node, name string) (certapi.Answer, error) {
	if s.err != nil {
		return certapi.Answer{}, s.err
	}
	if namespace != "ns" || node != "n" {
		return certapi.Answer{}, errors.New("not your request")
	}
	r := s.requests[name]
	switch {
	case r == nil:
		return certapi.Answer{}, nil
	case time.Since(r.at) < s.after:
		return certapi.Answer{Found: true}, nil
	}
	return r.answer, nil
}

// sign makes a certificate, with comments around it.
func (s *signer) sign(public crypto.PublicKey, from time.Time, life time.Duration) string {
	s.t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(len(s.asked))), NotBefore: from, NotAfter: from.Add(life)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return "# leaf\n" + string(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Headers: map[string]string{"A": "b"}, Bytes: raw})) + "# end\n"
}

func source(kind string) *corev1.PodCertificateProjection {
	return &corev1.PodCertificateProjection{SignerName: "s.example/x", KeyType: kind, CredentialBundlePath: "bundle.pem"}
}

func podOf(uid types.UID, sources ...*corev1.PodCertificateProjection) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: uid}}
	projected := &corev1.ProjectedVolumeSource{}
	for _, s := range sources {
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{PodCertificate: s})
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: projected}}}
	return pod
}
