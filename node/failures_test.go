// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func TestActiveDeadlineFailsThePod(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		seconds := int64(90)
		p.Spec.ActiveDeadlineSeconds = &seconds
		w.api.Create(p)
		w.pass(80 * time.Second)
		w.wantPhase("p", corev1.PodRunning)
		w.pass(15 * time.Second)
		w.wantPhase("p", corev1.PodFailed)
		if got := w.api.Pod("d", "p").Status.Reason; got != "DeadlineExceeded" {
			t.Errorf("reason is %q, want DeadlineExceeded", got)
		}
		wantCalls(t, b, "create d/p", "delete d/p")
	})
}

func TestHungCallsDoNotStopOthers(t *testing.T) {
	b := memory.New()
	b.Fault = func(ctx context.Context, method, key string) error {
		if method == "create" && strings.HasPrefix(key, "d/hung") {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range 10 {
			w.api.Create(bound(fmt.Sprint("hung", i), ""))
		}
		w.pass(time.Second)
		w.api.Create(bound("eleventh", ""))
		w.pass(3 * time.Second) // four workers, which hanging calls free after a second each
		w.wantPhase("eleventh", corev1.PodRunning)
		w.pass(10*time.Minute + 5*time.Second)
		if got := w.api.Pod("d", "hung0").Status.Message; !strings.Contains(got, context.DeadlineExceeded.Error()) {
			t.Errorf("message of a hung pod is %q, want the deadline in it", got)
		}
	})
}

func TestPanicCostsOnePodOneBackoff(t *testing.T) {
	b := memory.New()
	var once sync.Once
	b.Fault = func(_ context.Context, method, key string) error {
		if method == "create" && key == "d/bad" {
			once.Do(func() { panic("boom") })
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("bad", ""))
		w.api.Create(bound("good", ""))
		w.pass(100 * time.Millisecond)
		w.wantPhase("good", corev1.PodRunning)
		w.wantPhase("bad", corev1.PodPending)
		w.pass(time.Minute)
		w.wantPhase("bad", corev1.PodRunning)
	})
}

func TestLostPod(t *testing.T) {
	for _, tt := range []struct {
		policy corev1.RestartPolicy
		want   corev1.PodPhase
		calls  int
	}{{corev1.RestartPolicyAlways, corev1.PodRunning, 2}, {corev1.RestartPolicyNever, corev1.PodFailed, 1}} {
		t.Run(string(tt.policy), func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				p := bound("p", "a")
				p.Spec.RestartPolicy = tt.policy
				w.api.Create(p)
				w.pass(time.Minute)
				b.Lose("d/p")
				w.pass(2 * time.Minute)
				w.wantPhase("p", tt.want)
				if n := b.Count("create d/p"); n != tt.calls {
					t.Errorf("%d creates, want %d", n, tt.calls)
				}
				if e := strings.Join(w.events(), "\n"); strings.Count(e, "ProviderPodLost") != 1 {
					t.Errorf("events are %s, want one ProviderPodLost", e)
				}
			})
		})
	}
}

func TestShouldRetryFuncDecides(t *testing.T) {
	b := memory.New()
	b.Fault = memory.FailFirst("create", 100)
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(30 * time.Second)
		if n := b.Count("create d/p"); n != 3 {
			t.Errorf("%d tries, want 3", n)
		}
		w.pass(31 * time.Second) // the resync retries
		if n := b.Count("create d/p"); n <= 3 {
			t.Errorf("%d tries after a resync, want more", n)
		}
	}, func(cfg *PodControllerConfig) {
		cfg.SyncPodsFromKubernetesShouldRetryFunc = func(_ context.Context, key string, tries int, _ time.Time, err error) (*time.Duration, error) {
			if key != "d/p" || !errors.Is(err, memory.ErrUnwell) {
				t.Errorf("asked about %s, %v", key, err)
			}
			if tries == 3 {
				return nil, errors.New("enough")
			}
			d := time.Second
			return &d, nil
		}
	})
}

func TestDefaultRetryFunc(t *testing.T) {
	if d, err := DefaultRetryFunc(t.Context(), "k", 19, time.Now(), memory.ErrUnwell); d != nil || err != nil {
		t.Errorf("19th try: %v, %v", d, err)
	}
	if _, err := DefaultRetryFunc(t.Context(), "k", 20, time.Now(), memory.ErrUnwell); err == nil || !errors.Is(err, memory.ErrUnwell) || !strings.Contains(err.Error(), "maximum retries (20) reached") {
		t.Errorf("20th try: %v", err)
	}
	defer func(n int) { MaxRetries = n }(MaxRetries)
	MaxRetries = 2
	if _, err := DefaultRetryFunc(t.Context(), "k", 2, time.Now(), memory.ErrUnwell); err == nil {
		t.Error("an assigned MaxRetries has no effect")
	}
}

func TestPodForAnotherOperatingSystemIsRefused(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		foreign, ours := bound("foreign", "f"), bound("ours", "o")
		foreign.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
		ours.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
		w.api.Create(foreign)
		w.api.Create(ours)
		w.pass(time.Second)
		w.wantPhase("ours", corev1.PodRunning)
		w.wantPhase("foreign", corev1.PodFailed)
		if s := w.api.Pod("d", "foreign").Status; s.Reason != "PodOSNotSupported" || len(s.ContainerStatuses) != 0 {
			t.Errorf("status is %+v, want the reason PodOSNotSupported and no container that ended", s)
		}
		wantCalls(t, b, "create d/ours")
		w.api.Delete("d", "foreign", -1)
		w.pass(time.Second)
		w.wantPhase("foreign", "")
	}, func(cfg *PodControllerConfig) { cfg.OperatingSystem = "linux" })
}
