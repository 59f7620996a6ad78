// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func pod(name string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: uid, Labels: map[string]string{"k": "v"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func TestInjectedFaultsHitWhatTheyMatch(t *testing.T) {
	b := memory.New()
	broken := errors.New("broken")
	b.Inject(memory.Fault{Method: memory.Create, Key: "d/p", After: 1, Times: 2, Err: broken})
	b.Inject(memory.Fault{Method: memory.Create, UID: "u", Err: memory.ErrUnwell})
	var got []error
	for range 4 {
		got = append(got, b.CreatePod(t.Context(), pod("p", "a")))
	}
	if want := []error{nil, broken, broken, nil}; !slices.Equal(got, want) {
		t.Errorf("creates of p return %v, want %v", got, want)
	}
	if err := b.CreatePod(t.Context(), pod("q", "u")); !errors.Is(err, memory.ErrUnwell) {
		t.Errorf("create of UID u: got %v, want %v", err, memory.ErrUnwell)
	}
	b.Heal()
	if err := b.CreatePod(t.Context(), pod("q", "u")); err != nil {
		t.Errorf("after Heal: %v", err)
	}
}

func TestHangEndsWithItsContextUnlessDeaf(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New()
			b.Inject(memory.Fault{Method: memory.Create, Hang: true, Deaf: deaf})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(time.Hour, b.Heal)
			begin := time.Now()
			err := b.CreatePod(ctx, pod("p", "a"))
			if took := time.Since(begin); deaf && (err != nil || took != time.Hour) || !deaf && (!errors.Is(err, context.DeadlineExceeded) || took != time.Minute) {
				t.Errorf("deaf %v: returned %v after %v", deaf, err, took)
			}
		})
	}
}

func TestAPanicEndsTheCallInTheLedger(t *testing.T) {
	b := memory.New()
	b.Inject(memory.Fault{Panic: "boom"})
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v, want boom", v)
			}
		}()
		_ = b.CreatePod(t.Context(), pod("p", "a"))
	}()
	b.Heal()
	if err := b.CreatePod(t.Context(), pod("p", "a")); err != nil || len(b.Faults()) != 0 {
		t.Errorf("got %v and %q, want no overlap with the call that panicked", err, b.Faults())
	}
	if e := b.Ledger()[1]; e.Step != ledger.End || e.Err != "panic: boom" {
		t.Errorf("second entry is %+v, want the end of the call", e)
	}
}

func TestListsLie(t *testing.T) {
	b := memory.New()
	b.Run(pod("old", "o"))
	b.Lie(memory.Lie{Stale: true, Times: 1})
	b.Lie(memory.Lie{Empty: true, Times: 1})
	b.Lie(memory.Lie{Page: 1, Times: 1})
	b.Lie(memory.Lie{Add: []*corev1.Pod{pod("theirs", "t")}, Times: 1})
	b.Run(pod("new", "n"))
	var got []int
	for range 5 {
		pods, err := b.GetPods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, len(pods))
	}
	if want := []int{1, 0, 1, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("lists have %v pods, want %v", got, want)
	}
}

func TestReportsArriveLateTwiceAndReversed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		var mu sync.Mutex
		var got []string
		memory.Notifying{Backend: b}.NotifyPods(t.Context(), func(p *corev1.Pod) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, p.Status.Message)
		})
		b.Run(pod("p", "a"))
		say := func(message string) { b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = message }) }
		b.Reports(memory.Reports{Copies: 1})
		say("1")
		b.Reports(memory.Reports{Reverse: 2})
		say("2")
		say("3")
		b.Reports(memory.Reports{Delay: time.Second})
		say("4")
		b.Heal()
		say("5")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"", "1", "1", "3", "2", "5", "4"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

func TestDeletePodStopsTheInstanceThatIsMeant(t *testing.T) {
	b := memory.New()
	b.Run(pod("p", "a"))
	b.Extra(pod("p", "a"))
	b.Extra(pod("p", "x"))
	list, err := b.GetPods(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("listed %d pods: %v", len(list), err)
	}
	for _, tt := range []struct {
		pod  *corev1.Pod
		left []string
	}{{list[1], []string{"i1"}}, {pod("p", "x"), []string{"i1"}}, {pod("p", "a"), nil}} {
		if err := b.DeletePod(t.Context(), tt.pod); err != nil {
			t.Fatal(err)
		}
		if got := b.Instances("a"); !slices.Equal(got, tt.left) {
			t.Errorf("instances of a are %q, want %q", got, tt.left)
		}
	}
	if err := b.DeletePod(t.Context(), pod("p", "a")); !errdefs.IsNotFound(err) {
		t.Errorf("nothing is left: got %v, want not-found", err)
	}
	b.Run(pod("p", "next"))
	if err := b.DeletePod(t.Context(), pod("p", "a")); !errdefs.IsNotFound(err) || len(b.Instances("next")) != 1 {
		t.Errorf("another pod has the name: got %v, want not-found; of that pod %q run", err, b.Instances("next"))
	}
	b.KeepsNoUID = true
	if err := b.DeletePod(t.Context(), pod("p", "a")); err != nil || len(b.Instances("next")) != 0 {
		t.Errorf("a backend that keeps no UID knows the name alone: got %v; %q run", err, b.Instances("next"))
	}
	if v := ledger.AtMostOneInstance(b.Recorder.History()); len(v) != 0 {
		t.Errorf("extra instances count as the controllers': %v", v)
	}
}

func TestLossyCopies(t *testing.T) {
	b := memory.New()
	b.Lossy = func(p *corev1.Pod) { memory.DropLabels(p); memory.RewriteImages("docker.io/library/")(p) }
	b.Run(pod("p", "a"))
	p, err := b.GetPod(t.Context(), "d", "p")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Labels, p.Spec.Containers[0].Image); got != "map[]docker.io/library/i" {
		t.Errorf("got %s", got)
	}
}
