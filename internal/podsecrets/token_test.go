// SPDX-License-Identifier: Apache-2.0

package podsecrets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// issuer issues tokens and records the requests.
type issuer struct {
	asked []authenticationv1.TokenRequest
	err   error
	hold  chan struct{} // if not nil, responses wait until it is closed
}

func (i *issuer) client() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "serviceaccounts", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		create, ok := a.(clientgotesting.CreateActionImpl)
		if !ok || a.GetSubresource() != "token" {
			return false, nil, nil
		}
		if i.hold != nil {
			<-i.hold
		}
		if i.err != nil {
			return true, nil, i.err
		}
		r := create.Object.(*authenticationv1.TokenRequest).DeepCopy()
		i.asked = append(i.asked, *r)
		r.Status.Token = fmt.Sprintf("token-%s-%d", create.Name, len(i.asked))
		r.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second))
		return true, r, nil
	})
	return client
}

// projection returns the source of a token in a volume.
func projection(audience string, seconds int64) *corev1.ServiceAccountTokenProjection {
	return &corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: &seconds, Path: "token"}
}

func podWith(uid types.UID, sources ...*corev1.ServiceAccountTokenProjection) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: uid},
		Spec:       corev1.PodSpec{ServiceAccountName: "robot"},
	}
	for _, s := range sources {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: s}}},
		}})
	}
	return pod
}

func mustToken(t *testing.T, m *Manager, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) Token {
	t.Helper()
	token, err := m.Token(t.Context(), pod, source)
	if err != nil {
		t.Fatalf("ask for a token: %v", err)
	}
	return token
}

func TestSecurityC5TokensAreBoundToThePodAndItsAudience(t *testing.T) {
	i := &issuer{}
	m := New(Config{Accounts: i.client().CoreV1()})
	pod := podWith("1", projection("vault", 7200), &corev1.ServiceAccountTokenProjection{})
	m.Track(pod)
	mustToken(t, m, pod, projection("vault", 7200))
	mustToken(t, m, pod, projection("", 3600))
	for n, want := range []struct {
		audience string
		seconds  int64
	}{{"[vault]", 7200}, {"[]", 3600}} {
		spec := i.asked[n].Spec
		if fmt.Sprint(spec.Audiences) != want.audience || *spec.ExpirationSeconds != want.seconds {
			t.Errorf("request %d: audiences %v for %d s, want %s for %d s", n, spec.Audiences, *spec.ExpirationSeconds, want.audience, want.seconds)
		}
		if ref := spec.BoundObjectRef; ref == nil || ref.Kind != "Pod" || ref.APIVersion != "v1" || ref.Name != "p" || ref.UID != "1" {
			t.Errorf("request %d is bound to %+v, want the pod", n, ref)
		}
	}

	for name, ask := range map[string]struct {
		pod    *corev1.Pod
		source *corev1.ServiceAccountTokenProjection
		kind   func(error) bool
	}{
		"an audience that no volume names":     {pod, projection("other", 7200), errdefs.IsInvalidInput},
		"another expiry":                       {pod, projection("vault", 7201), errdefs.IsInvalidInput},
		"a volume that only the copy has":      {podWith("1", projection("other", 600)), projection("other", 600), errdefs.IsInvalidInput},
		"another pod of that name":             {podWith("2", projection("vault", 7200)), projection("vault", 7200), errdefs.IsNotFound},
		"another name with the UID of the pod": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "q", UID: "1"}}, projection("vault", 7200), errdefs.IsNotFound},
	} {
		if token, err := m.Token(t.Context(), ask.pod, ask.source); !ask.kind(err) || token.Value != "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(i.asked) != 2 {
		t.Errorf("the API server was asked %d times, want twice", len(i.asked))
	}
}

// TestSecurityC5TokensAreRenewedInTime requests the token every minute for 48 hours, like the update of a volume.
func TestSecurityC5TokensAreRenewedInTime(t *testing.T) {
	for life, use := range map[int64]time.Duration{
		600:        8 * time.Minute,
		3600:       48 * time.Minute,
		7 * 86400:  24 * time.Hour,
		100 * 3600: 24 * time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{}
			m := New(Config{Accounts: i.client().CoreV1()})
			pod := podWith("1", projection("", life))
			m.Track(pod)
			begin, last, got := time.Now(), Token{}, time.Time{}
			for time.Since(begin) < 48*time.Hour {
				token := mustToken(t, m, pod, projection("", life))
				if !token.ExpiresAt.After(time.Now()) {
					t.Fatalf("a token of %d s has expired when it is handed out", life)
				}
				switch {
				case token.Value == last.Value:
				case last.Value != "" && (time.Since(got) < use-jitter || time.Since(got) > use+time.Minute):
					t.Fatalf("a token of %d s was used for %v, want %v and at most a minute more", life, time.Since(got), use)
				default:
					last, got = token, time.Now()
					if d := time.Until(token.RefreshAt); d > use || d < use-jitter {
						t.Fatalf("a token of %d s is to be renewed after %v, want %v", life, d, use)
					}
				}
				time.Sleep(time.Minute)
			}
			if least := int(48 * time.Hour / (use + time.Minute)); len(i.asked) < least || len(i.asked) > least*5/4+2 {
				t.Errorf("%d tokens of %d s in 48 hours, want about %d", len(i.asked), life, least)
			}
		})
	}
}

func TestSecurityC5TokensGoWithThePod(t *testing.T) {
	for name, end := range map[string]func(*Manager, types.UID){"ended": (*Manager).End, "forgotten": (*Manager).Drop} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{hold: make(chan struct{})}
			m := New(Config{Accounts: i.client().CoreV1()})
			pod := podWith("1", projection("", 600))
			m.Track(pod)
			entry := m.pods["1"]
			late := make(chan error)
			go func() {
				_, err := m.Token(context.Background(), pod, projection("", 600))
				late <- err
			}()
			synctest.Wait()
			end(m, "1")
			close(i.hold)
			if err := <-late; !errdefs.IsNotFound(err) {
				t.Errorf("%s: a token that came late was handed out, error %v", name, err)
			}
			if _, err := m.Token(t.Context(), pod, projection("", 600)); !errdefs.IsNotFound(err) {
				t.Errorf("%s: got %v for a pod that has gone", name, err)
			}
			if entry.tokens != nil || strings.Contains(fmt.Sprintf("%+v", &entry.values), "token-robot") {
				t.Errorf("%s: there are still tokens: %v", name, entry.tokens)
			}
		})
	}
}

func TestTokenOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		m := New(Config{Accounts: i.client().CoreV1()})
		pod := podWith("1", projection("", 600))
		m.Track(pod)
		first := mustToken(t, m, pod, projection("", 600))
		i.err = errors.New("no answer")
		time.Sleep(9 * time.Minute)
		if got := mustToken(t, m, pod, projection("", 600)); got.Value != first.Value || !got.RefreshAt.After(time.Now()) {
			t.Errorf("got %+v, want the first token and a time for the next try", got)
		}
		time.Sleep(time.Minute)
		if _, err := m.Token(t.Context(), pod, projection("", 600)); err == nil {
			t.Error("an expired token was handed out")
		}
		i.err = nil
		if got := mustToken(t, m, pod, projection("", 600)); got.Value == first.Value {
			t.Error("got the expired token after the outage")
		}
	})
}

func TestManyAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{hold: make(chan struct{})}
		m := New(Config{Accounts: i.client().CoreV1()})
		pod := podWith("1", projection("", 600))
		m.Track(pod)
		done := make(chan error)
		for range 10 {
			go func() {
				_, err := m.Token(t.Context(), pod, projection("", 600))
				done <- err
			}()
		}
		synctest.Wait() // one of them asks
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Token(ctx, pod, projection("", 600)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the caller's patience", err)
		}
		close(i.hold)
		for range 10 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if len(i.asked) != 1 {
			t.Errorf("the API server was asked %d times", len(i.asked))
		}
	})
}

func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		time.Sleep(time.Minute)
		if got := timePassed(begin, time.Now()); got != time.Minute {
			t.Errorf("after a minute: %v", got)
		}
		slept := time.Now().Round(0).Add(time.Hour) // without a monotonic reading, as if the monotonic clock had stopped
		if got := timePassed(begin, slept); got != time.Hour+time.Minute {
			t.Errorf("after a sleep: %v", got)
		}
	})
}

// TestSecurityC5TokensLastAsLongAsThePodCanRun: a token that cannot be replaced is valid until the deadline of the pod. A longer lifetime is refused.
// The audience does not change.
func TestSecurityC5TokensLastAsLongAsThePodCanRun(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		deadline, grace *int64
		asks, want      int64
	}{
		{nil, seconds(30), 3600, 3600}, {seconds(7200), nil, 3600, 7800}, {seconds(7200), seconds(30), 3600, 7830}, {seconds(60), nil, 3600, 3600}, {seconds(1 << 40), seconds(1 << 62), 3600, 1 << 32},
	} {
		i := &issuer{}
		pod := podWith("1", projection("vault", c.asks))
		pod.Spec.ActiveDeadlineSeconds, pod.Spec.TerminationGracePeriodSeconds = c.deadline, c.grace
		m := New(Config{Accounts: i.client().CoreV1()})
		m.Track(pod)
		mustToken(t, m, pod, lifecycle.LastingToken(pod, projection("vault", c.asks)))
		if got := i.asked[0].Spec; *got.ExpirationSeconds != c.want || got.Audiences[0] != "vault" {
			t.Errorf("deadline %v, %d s asked for: the token is for %v and lives %d s, want %d", c.deadline, c.asks, got.Audiences, *got.ExpirationSeconds, c.want)
		}
		if _, err := m.Token(t.Context(), pod, projection("vault", c.want+1)); !errdefs.IsInvalidInput(err) {
			t.Errorf("a token that lives longer than the pod can run: got %v", err)
		}
		if _, err := m.Token(t.Context(), pod, lifecycle.LastingToken(pod, projection("other", c.asks))); !errdefs.IsInvalidInput(err) {
			t.Errorf("a token for another audience: got %v", err)
		}
	}
}
