// SPDX-License-Identifier: Apache-2.0

package podcerts

import (
	"bytes"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
)

const ed = ed25519Type

func TestEveryKeyType(t *testing.T) {
	for _, kind := range []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", ed} {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, func(t *testing.T, s *signer, b *Manager) {
				got, err := b.Get(t.Context(), podOf("u", source(kind)), source(kind), nil)
				if err != nil {
					t.Fatal(err)
				}
				pair, err := tls.X509KeyPair(got.Chain, got.Key)
				if err != nil || !isOf(pair.Leaf.PublicKey, kind) || !pair.Leaf.NotAfter.Equal(got.ExpiresAt) {
					t.Errorf("%v: want a key of the type with its certificate", err)
				}
				if !bytes.HasPrefix(got.Key, []byte("-----BEGIN PRIVATE KEY-----\n")) || !bytes.HasPrefix(got.Chain, []byte("-----BEGIN CERTIFICATE-----\n")) || bytes.ContainsAny(got.Chain, "#:") {
					t.Errorf("got %s, want PEM without comments and headers", got.Chain)
				}
				if r := s.asked[0]; r.Node != "n" || r.NodeUID != "node-uid" || r.Account != "default" || r.AccountUID != "ns-default" || r.Pod.UID != "u" {
					t.Errorf("asked with %+v", r)
				}
			})
		})
	}
	inWorld(t, func(t *testing.T, _ *signer, b *Manager) {
		if _, err := b.Get(t.Context(), podOf("u", source("DSA")), source("DSA"), nil); !errdefs.IsInvalidInput(err) {
			t.Errorf("a type that nobody knows: %v", err)
		}
	})
}

func TestOnlyWhatAVolumeAsksForIsAskedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, s *signer, b *Manager) {
		other := source(ed)
		other.SignerName = "other.example/x"
		if _, err := b.Get(t.Context(), podOf("u", source(ed)), other, nil); !errdefs.IsInvalidInput(err) || len(s.asked) > 0 {
			t.Errorf("got %v, asked %d times", err, len(s.asked))
		}
	})
}

func TestACertificateIsAskedForOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, s *signer, b *Manager) {
		pod := podOf("u", source(ed), source("ECDSAP256"))
		first, err := b.Get(t.Context(), pod, source(ed), nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if again, err := b.Get(t.Context(), pod, source(ed), nil); err != nil || !bytes.Equal(first.Key, again.Key) || len(s.asked) != 1 {
			t.Errorf("again: %v, asked %d times", err, len(s.asked))
		}
		if _, err := b.Get(t.Context(), pod, source("ECDSAP256"), nil); err != nil || len(s.asked) != 2 {
			t.Errorf("another source: %v, asked %d times", err, len(s.asked))
		}
		if _, err := b.Get(t.Context(), podOf("u2", source(ed)), source(ed), nil); err != nil || len(s.asked) != 3 {
			t.Errorf("another pod: %v, asked %d times", err, len(s.asked))
		}
		b.Forget("u")
		if fresh, err := b.Get(t.Context(), pod, source(ed), nil); err != nil || bytes.Equal(first.Key, fresh.Key) {
			t.Errorf("after it was forgotten: %v, and the key is the old one", err)
		}
	})
}

func TestTheSignerMayTakeItsTime(t *testing.T) {
	inWorld(t, func(t *testing.T, s *signer, b *Manager) {
		pod, began := podOf("u", source(ed)), time.Now()
		s.after = 2 * time.Second
		if _, err := b.Get(t.Context(), pod, source(ed), nil); err != nil || time.Since(began) > 2*s.after {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		pod.UID, s.after, began = "u2", time.Minute, time.Now()
		if _, err := b.Get(t.Context(), pod, source(ed), nil); err == nil || err.Error() != "credential bundle is not issued yet" || time.Since(began) > patience {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		time.Sleep(time.Minute)
		if _, err := b.Get(t.Context(), pod, source(ed), nil); err != nil || len(s.asked) != 2 {
			t.Errorf("later: %v, asked %d times: want the request that was made", err, len(s.asked))
		}
	})
}

func TestARefusalIsFinalAndHasItsReason(t *testing.T) {
	for failure, want := range map[string]string{
		certapi.Denied: `PodCertificateRequest was permanently denied: reason="Because" message="of this"`,
		certapi.Failed: `PodCertificateRequest was permanently failed: reason="Because" message="of this"`,
	} {
		inWorld(t, func(t *testing.T, s *signer, b *Manager) {
			s.failure = failure
			for range 3 {
				if _, err := b.Get(t.Context(), podOf("u", source(ed)), source(ed), nil); err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				time.Sleep(time.Minute)
			}
			if len(s.asked) != 1 {
				t.Errorf("asked %d times, want once", len(s.asked))
			}
		})
	}
}

func TestACertificateForAnotherKeyIsNotUsed(t *testing.T) {
	inWorld(t, func(t *testing.T, s *signer, b *Manager) {
		s.stranger = true
		if _, err := b.Get(t.Context(), podOf("u", source(ed)), source(ed), nil); err == nil || !strings.Contains(err.Error(), "the certificate is for another key") {
			t.Errorf("got %v", err)
		}
	})
}

func TestARequestThatSomebodyDeletedIsMadeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, s *signer, b *Manager) {
		pod := podOf("u", source(ed))
		s.after = time.Minute
		if _, err := b.Get(t.Context(), pod, source(ed), nil); !errors.Is(err, errNotIssued) {
			t.Fatal(err)
		}
		clear(s.requests)
		if _, err := b.Get(t.Context(), pod, source(ed), nil); err == nil || !strings.Contains(err.Error(), "appears to have been deleted") {
			t.Errorf("got %v", err)
		}
		s.after = 0
		if _, err := b.Get(t.Context(), pod, source(ed), nil); err != nil || len(s.asked) != 2 {
			t.Errorf("got %v, asked %d times", err, len(s.asked))
		}
	})
}

func TestTheNextCertificateComesInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, s *signer, b *Manager) {
		pod, began := podOf("u", source(ed)), time.Now()
		first, err := b.Get(t.Context(), pod, source(ed), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.after = 30 * time.Second
		for len(s.asked) == 1 && time.Since(began) < s.life {
			time.Sleep(15 * time.Second)
			looked := time.Now()
			if got, err := b.Get(t.Context(), pod, source(ed), nil); err != nil || !bytes.Equal(got.Key, first.Key) || time.Since(looked) > 0 {
				t.Fatalf("got %v after %s, want the old one at once while the next is asked for", err, time.Since(looked))
			}
		}
		if after := time.Since(began); after < s.life/2 || after > s.life/2+jitter+time.Minute {
			t.Errorf("asked again after %s, want when the signer says, and a little later at most", after)
		}
		time.Sleep(s.after)
		next, err := b.Get(t.Context(), pod, source(ed), nil)
		if err != nil || bytes.Equal(next.Key, first.Key) || !next.ExpiresAt.After(first.ExpiresAt) {
			t.Errorf("got %v, want another key and a later end", err)
		}
		for _, key := range [][]byte{first.Key, next.Key} {
			found := false
			for _, told := range s.told {
				found = found || told == string(key)
			}
			if !found {
				t.Error("a key may be said")
			}
		}
	})
}

// TestWhatIsValidIsGivenThroughSyncErrors: during an outage or after a refusal, Get returns a certificate until it expires, and not longer.
func TestWhatIsValidIsGivenThroughSyncErrors(t *testing.T) {
	for name, begin := range map[string]func(*signer){
		"outage": func(s *signer) { s.err = errors.New("no answer") },
		"denied": func(s *signer) { s.failure = certapi.Denied },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, s *signer, b *Manager) {
				pod := podOf("u", source(ed))
				first, err := b.Get(t.Context(), pod, source(ed), nil)
				if err != nil {
					t.Fatal(err)
				}
				begin(s)
				for time.Now().Add(time.Hour).Before(first.ExpiresAt) {
					time.Sleep(time.Hour)
					if got, err := b.Get(t.Context(), pod, source(ed), nil); err != nil || !bytes.Equal(got.Key, first.Key) {
						t.Fatalf("%s before its end: %v", time.Until(first.ExpiresAt), err)
					}
				}
				time.Sleep(2 * time.Hour)
				if _, err := b.Get(t.Context(), pod, source(ed), nil); err == nil {
					t.Error("what has ended is given")
				}
				close(s.events.Events)
				events := slices.Collect(func(yield func(string) bool) {
					for e := range s.events.Events {
						if !yield(e) {
							return
						}
					}
				})
				if name == "denied" && (len(events) != 1 || !strings.HasPrefix(events[0], "Warning Denied PodCertificateRequest ns/req-2 was denied,") || !strings.Contains(events[0], `reason="Because"`)) {
					t.Errorf("events %q, want one that tells of the refusal", events)
				}
				if name == "outage" {
					s.err = nil
					if _, err := b.Get(t.Context(), pod, source(ed), nil); err != nil {
						t.Errorf("after the outage: %v", err)
					}
				}
			})
		})
	}
}

func TestARestartKeepsWhatIsValid(t *testing.T) {
	inWorld(t, func(t *testing.T, s *signer, b *Manager) {
		pod := podOf("u", source(ed))
		first, err := b.Get(t.Context(), pod, source(ed), nil)
		if err != nil {
			t.Fatal(err)
		}
		had := slices.Concat(first.Key, first.Chain)
		other, err := newKey(ed)
		if err != nil {
			t.Fatal(err)
		}
		otherKey, err := encodeKey(other)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.manager().Get(t.Context(), pod, source(ed), had); err != nil || !bytes.Equal(got.Key, first.Key) || !bytes.Equal(got.Chain, first.Chain) || len(s.asked) != 1 {
			t.Errorf("got %v, asked %d times: want what the volume has", err, len(s.asked))
		}
		for name, bad := range map[string][]byte{
			"nothing": nil, "no PEM": []byte("x"), "no certificate": first.Key, "no key": first.Chain, "another key": slices.Concat(otherKey, first.Chain),
			"half a key": had[20:], "a key that is none": []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
		} {
			asked := len(s.asked)
			if got, err := s.manager().Get(t.Context(), pod, source(ed), bad); err != nil || bytes.Equal(got.Key, first.Key) || len(s.asked) != asked+1 {
				t.Errorf("%s: %v, want a new one", name, err)
			}
		}
		asked, wish := len(s.asked), source("ECDSAP256")
		if _, err := s.manager().Get(t.Context(), podOf("u", wish), wish, had); err != nil || len(s.asked) != asked+1 {
			t.Errorf("a key of another type is kept: %v", err)
		}
		// The next certificate is requested after two thirds of the lifetime.
		time.Sleep(s.life*2/3 + time.Minute)
		asked, s.after = len(s.asked), time.Minute
		if got, err := s.manager().Get(t.Context(), pod, source(ed), had); err != nil || !bytes.Equal(got.Key, first.Key) || len(s.asked) != asked+1 {
			t.Errorf("late in its life: %v, asked %d times", err, len(s.asked)-asked)
		}
		time.Sleep(s.life)
		if _, err := s.manager().Get(t.Context(), pod, source(ed), had); !errors.Is(err, errNotIssued) {
			t.Errorf("after its end: %v", err)
		}
	})
}
