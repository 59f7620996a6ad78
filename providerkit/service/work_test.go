// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// removing is a cloud whose instances leave things behind.
type removing struct {
	*cloud
	asked []string
	fails map[string]error
}

func (r *removing) Remove(_ context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, name)
	return r.fails[name]
}

// TestWhatIsLeftBehindIsRemovedOnce: a left thing is removed once, and a missing thing counts as removed. A
// removal that fails is retried less and less often, and delays no other removal.
func TestWhatIsLeftBehindIsRemovedOnce(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		driver := &removing{cloud: h.cloud, fails: map[string]error{"a": errors.New("busy"), "c": errdefs.NotFound("gone"), "d": errdefs.RetryAfter(errors.New("slow"), 10*time.Minute)}}
		p, _ := h.start(driver)
		for _, name := range []string{"a", "b", "c", "d", "b"} {
			p.Leave(name)
		}
		for range 5 {
			time.Sleep(time.Minute)
			p.Leave("d") // another Leave does not bring the retry of the removal forward
		}
		count := func(name string) (n int) {
			driver.mu.Lock()
			defer driver.mu.Unlock()
			for _, asked := range driver.asked {
				if asked == name {
					n++
				}
			}
			return n
		}
		if count("b") != 1 || count("c") != 1 || count("d") != 1 || count("a") < 5 || count("a") > 10 {
			t.Errorf("asked for %v", driver.asked)
		}
		driver.edit(func() { delete(driver.fails, "a") })
		time.Sleep(6 * time.Minute)
		var before int
		driver.edit(func() {
			before = len(driver.asked)
			delete(driver.fails, "d")
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := driver.asked[before:]; len(got) > 1 || len(got) == 1 && got[0] != "d" {
			t.Errorf("then asked for %v", got)
		}
		p.Leave("b")
		time.Sleep(time.Second)
		if count("b") != 2 {
			t.Errorf("a thing of the same name is removed %d times", count("b"))
		}
	})
}

// TestWhatIsKeptAgainIsNotRemoved: Keep takes back a thing that an earlier create has left. Keep waits for a
// removal that is under way.
func TestWhatIsKeptAgainIsNotRemoved(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		driver := waiting{h.cloud, make(chan struct{}, 9), make(chan struct{}, 9)}
		p, _ := h.start(driver)
		p.Leave("a")
		<-driver.asked
		p.Leave("b")
		if err := p.Keep(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		kept := make(chan error, 1)
		go func() { kept <- p.Keep(t.Context(), "a") }()
		synctest.Wait()
		if len(kept) != 0 {
			t.Error("kept while it is removed")
		}
		driver.may <- struct{}{}
		if err := <-kept; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if n := len(driver.asked); n != 0 {
			t.Errorf("asked for %d times more", n)
		}
		p.Leave("c")
		<-driver.asked
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Keep(ctx, "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while a removal hangs: got %v", err)
		}
		driver.may <- struct{}{}
	})
}

// TestWhatIsKeptIsNotRemovedAfterwards: a removal that runs beside keep is over before keep returns.
func TestWhatIsKeptIsNotRemovedAfterwards(t *testing.T) {
	var removed atomic.Bool
	l := newLeftovers(func(context.Context, string) error {
		runtime.Gosched()
		removed.Store(true)
		return nil
	})
	var busy sync.WaitGroup
	defer busy.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 4 { // others that need the lock
		busy.Go(func() {
			for ctx.Err() == nil {
				l.next()
			}
		})
	}
	for n := range 100000 {
		removed.Store(false)
		l.add("a")
		var beside sync.WaitGroup
		beside.Go(func() { _, _ = l.try(ctx, "a") })
		if err := l.keep(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		before := removed.Load()
		beside.Wait()
		if !before && removed.Load() {
			t.Fatalf("round %d: it was removed after it had been kept", n)
		}
	}
}

// hanging is a cloud that never answers a request to remove a thing.
type hanging struct{ *cloud }

func (hanging) Remove(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestListsGoOnWhileARemovalHangs: lists go on during a removal that hangs, so the provider sees new pods.
func TestListsGoOnWhileARemovalHangs(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(hanging{h.cloud})
		p.Leave("a")
		synctest.Wait()
		before := h.cloud.number(&h.cloud.lists)
		h.create(p, h.pod("web"))
		time.Sleep(time.Minute)
		if got := h.cloud.number(&h.cloud.lists) - before; got < 5 {
			t.Errorf("%d lists in a minute", got)
		}
	})
}

// renewing is a cloud that replaces tokens.
type renewing struct {
	*cloud
	at    []time.Duration // since begun
	begun time.Time
	fails error
	files []string
}

func (r *renewing) Renew(_ context.Context, in *Inputs, _ vm) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Since(r.begun).Round(time.Minute))
	for _, list := range in.Files {
		for _, f := range list {
			r.files = append(r.files, f.Path)
		}
	}
	return r.fails
}

// tokens issues tokens that are valid for an hour.
type tokens struct{}

func (tokens) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	return node.PodToken{Token: "token", RefreshAt: time.Now().Add(48 * time.Minute), ExpiresAt: time.Now().Add(time.Hour)}, nil
}

// TestTokensAreReplacedInTime: a token that this process gave to a pod is replaced at its RefreshAt. The tokens
// of a pod from before a restart are replaced before they can have expired. The other files of the volume stay
// as they are, and may be missing. A renewal that fails is retried.
func TestTokensAreReplacedInTime(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		driver := &renewing{cloud: h.cloud, begun: time.Now()}
		p, stop := h.start(driver)
		pod := h.pod("web")
		pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}}},
		}}}}}
		h.create(p, pod)
		h.create(p, h.pod("other"))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if want := []time.Duration{48 * time.Minute, 96 * time.Minute}; !slices.Equal(driver.at, want) || !slices.Equal(driver.files, []string{"token", "token"}) {
			t.Errorf("replaced after %v: %v", driver.at, driver.files)
		}
		stop()
		again := &renewing{cloud: h.cloud, begun: time.Now(), fails: errors.New("busy")}
		h.start(again)
		time.Sleep(12 * time.Minute)
		synctest.Wait()
		if len(again.at) < 2 || again.at[0] > 9*time.Minute {
			t.Errorf("after a restart replaced after %v", again.at)
		}
		again.edit(func() { again.fails = nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		n := len(again.at)
		time.Sleep(40 * time.Minute)
		synctest.Wait()
		if len(again.at) != n {
			t.Errorf("replaced after %v", again.at)
		}
	})
}

// waiting is a cloud that removes a thing only when the test allows it.
type waiting struct {
	*cloud
	asked, may chan struct{}
}

func (w waiting) Remove(context.Context, string) error {
	w.asked <- struct{}{}
	<-w.may
	return nil
}

// TestWhatIsLeftBehindDuringItsRemovalIsRemovedAgain: a thing that is left during its removal is removed once
// more. A retried pod may have made it anew after the first removal.
func TestWhatIsLeftBehindDuringItsRemovalIsRemovedAgain(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		driver := waiting{h.cloud, make(chan struct{}, 9), make(chan struct{}, 9)}
		p, _ := h.start(driver)
		p.Leave("a")
		<-driver.asked
		p.Leave("a")
		driver.may <- struct{}{}
		driver.may <- struct{}{}
		time.Sleep(time.Hour)
		if n := len(driver.asked); n != 1 {
			t.Errorf("asked for %d times more, want once", n)
		}
	})
}
