// SPDX-License-Identifier: Apache-2.0

package apiwatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// scripted simulates an API server at the given version, which may be down.
type scripted struct {
	version string
	down    func() error
	asked   []string // versions of lists
	watched []string // versions of watches
}

func (s *scripted) source() *Source {
	answer := func() error {
		if s.down != nil {
			return s.down()
		}
		return nil
	}
	return NewSource(
		func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			s.asked = append(s.asked, o.ResourceVersion)
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}, answer()
		},
		func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			s.watched = append(s.watched, o.ResourceVersion)
			return watch.NewFake(), answer()
		},
	)
}

func TestListsAskForTheLatestVersion(t *testing.T) {
	s := &scripted{version: "7"}
	for _, version := range []string{"0", "5", ""} {
		if _, err := s.source().ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: version}); err != nil {
			t.Fatal(err)
		}
	}
	for _, got := range s.asked {
		if got != "" {
			t.Errorf("listed at version %q: another API server may be behind", got)
		}
	}
}

// TestOutageEndsWithinTwoSeconds: after an outage, the list comes within two seconds. A reflector alone would
// pause for up to half a minute.
func TestOutageEndsWithinTwoSeconds(t *testing.T) {
	for name, failure := range map[string]error{
		"refused":     errors.New("connection refused"),
		"unavailable": apierrors.NewServiceUnavailable("starting"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				back := time.Now().Add(5 * time.Minute)
				s := &scripted{version: "7", down: func() error {
					if time.Now().Before(back) {
						return failure
					}
					return nil
				}}
				if _, err := s.source().ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
					t.Fatal(err)
				}
				if late := time.Since(back); late > 2*time.Second {
					t.Errorf("listed %v after the API server was back", late)
				}
				if n := len(s.asked); n > 260 {
					t.Errorf("asked %d times in five minutes", n)
				}
			})
		})
	}
}

func TestPersistenceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &scripted{down: func() error { return errors.New("connection refused") }}
		if _, err := s.source().ListWithContext(ctx, metav1.ListOptions{}); err == nil {
			t.Error("an API server that never answered was said to have")
		}
	})
}

func TestRefusalIsAnAnswer(t *testing.T) {
	s := &scripted{down: func() error { return apierrors.NewForbidden(corev1.Resource("pods"), "", nil) }}
	if _, err := s.source().ListWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || len(s.asked) != 1 {
		t.Errorf("got %v after %d requests, want the refusal after one", err, len(s.asked))
	}
}

// TestRestoredAPIServerIsListedAnew: a restored API server has an older version, so the source lists again. A watch from a future version would be
// silent.
func TestRestoredAPIServerIsListedAnew(t *testing.T) {
	s := &scripted{version: "700"}
	source := s.source()
	if _, err := source.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "700"}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.asked); n != 1 {
		t.Errorf("%d lists before a watch that follows one, want 1", n)
	}
	if _, err := source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "699"}); err != nil {
		t.Errorf("the API server has come farther than the last watch, and yet: %v", err)
	}
	s.version = "90"
	if _, err := source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "712"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("watching a version of the future: %v, want expired", err)
	}
	if n := len(s.watched); n != 2 {
		t.Errorf("%d watches, want 2", n)
	}
}
