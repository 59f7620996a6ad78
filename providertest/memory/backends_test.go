// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// shown returns the results of GetPod and GetPods for the pods of one name, as UID and phase.
func shown(t *testing.T, b *memory.Backend, name string) (get string, list []string) {
	t.Helper()
	text := func(p *corev1.Pod) string { return fmt.Sprintf("%s %s", p.UID, p.Status.Phase) }
	p, err := b.GetPod(t.Context(), "d", name)
	if err == nil {
		get = text(p)
	} else if get = "error"; errdefs.IsNotFound(err) {
		get = "not found"
	}
	pods, err := b.GetPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if p.Name == name {
			list = append(list, text(p))
		}
	}
	return get, list
}

// wantShown checks the results of shown for pod p.
func wantShown(t *testing.T, b *memory.Backend, when, get string, list ...string) {
	t.Helper()
	gotGet, gotList := shown(t, b, "p")
	if gotGet != get || !slices.Equal(gotList, list) {
		t.Errorf("%s: GetPod says %q and GetPods %q, want %q and %q", when, gotGet, gotList, get, list)
	}
}

func TestEndedPodsAreKeptBesideTheirSuccessors(t *testing.T) {
	for _, endedFirst := range []bool{false, true} {
		b := memory.New()
		b.KeepsEnded, b.EndedFirst, b.ExitCode = true, endedFirst, 3
		old := pod("p", "old")
		b.Run(old)
		for range 2 {
			if err := b.DeletePod(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			wantShown(t, b, "after DeletePod", "old Failed", "old Failed")
		}
		b.Run(pod("p", "new"))
		get := "new Running"
		if endedFirst {
			get = "old Failed"
		}
		wantShown(t, b, "beside a successor", get, "old Failed", "new Running")
		if err := b.DeletePod(t.Context(), pod("p", "new")); err != nil {
			t.Fatal(err)
		}
		get = "new Failed"
		if endedFirst {
			get = "old Failed"
		}
		wantShown(t, b, "after all ended", get, "old Failed", "new Failed")
		if p := b.Has("d/p"); p.UID != "new" {
			t.Errorf("Has returns %s, want the one that was started last", p.UID)
		}
		told := map[string]int{}
		for _, e := range b.Ledger() {
			if e.Verb == ledger.Status {
				told[fmt.Sprintf("%s %s", e.UID, e.Status.Phase)]++
			}
		}
		if told["old Failed"] != 1 || told["new Failed"] != 1 {
			t.Errorf("the ledger has the statuses %v, want one end of each", told)
		}
	}
}

func TestNewPodsAreShownLate(t *testing.T) {
	for _, saysPending := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New()
			b.ShowsAfter, b.SaysPending = 20*time.Second, saysPending
			var told []corev1.PodPhase
			memory.Notifying{Backend: b}.NotifyPods(t.Context(), func(p *corev1.Pod) { told = append(told, p.Status.Phase) })
			if err := b.CreatePod(t.Context(), pod("p", "u")); err != nil {
				t.Fatal(err)
			}
			if ids := b.Instances("u"); len(ids) != 1 {
				t.Errorf("instances are %q, want one at once", ids)
			}
			time.Sleep(20*time.Second - time.Nanosecond)
			wantShown(t, b, "before", "not found")
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			wantShown(t, b, "then", "u Running", "u Running")
			want := []corev1.PodPhase{corev1.PodPending, corev1.PodRunning}
			if !saysPending {
				want = want[1:]
			}
			if !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
		})
	}
}

func TestAPodThatIsNotShownYetCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		b.ShowsAfter, b.KeepsEnded = 20*time.Second, true
		p := pod("p", "u")
		if err := b.CreatePod(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := b.DeletePod(t.Context(), p); err != nil || len(b.Instances("u")) != 0 {
			t.Errorf("DeletePod returns %v, and %q run", err, b.Instances("u"))
		}
		wantShown(t, b, "before", "not found")
		time.Sleep(time.Minute)
		wantShown(t, b, "then", "u Succeeded", "u Succeeded")
	})
}

func TestAPodThatIsNotThereIsAPlainError(t *testing.T) {
	b := memory.New()
	b.PlainErrors = true
	b.Run(pod("p", "u"))
	wantShown(t, b, "of a pod", "u Running", "u Running")
	b.Lose("d/p")
	wantShown(t, b, "of none", "error")
	if _, err := b.GetPodStatus(t.Context(), "d", "p"); err == nil || errdefs.IsNotFound(err) {
		t.Errorf("GetPodStatus returns %v, want an error without a kind", err)
	}
	b.Run(pod("p", "v"))
	b.Lie(memory.Lie{Empty: true, Reads: true})
	wantShown(t, b, "of one that is denied", "error")
}

func TestReadsLieWithTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		b.Run(pod("q", "q"))
		for _, tt := range []struct {
			name string
			lie  memory.Lie
			get  string
			list []string
		}{
			{"empty", memory.Lie{Empty: true, For: time.Minute, Reads: true}, "not found", nil},
			{"partial", memory.Lie{Page: 1, For: time.Minute, Reads: true}, "not found", nil},
			{"stale", memory.Lie{Stale: true, For: time.Minute, Reads: true}, "not found", nil},
			{"lists only", memory.Lie{Empty: true, For: time.Minute}, "p Running", nil},
		} {
			b.Lie(tt.lie)
			b.Run(pod("p", "p"))
			time.Sleep(time.Minute - 1)
			wantShown(t, b, tt.name, tt.get, tt.list...)
			time.Sleep(time.Nanosecond)
			wantShown(t, b, "after "+tt.name, "p Running", "p Running")
			b.Lose("d/p")
		}
		b.Lie(memory.Lie{Empty: true, Reads: true, Deletes: true})
		if err := b.DeletePod(t.Context(), pod("q", "q")); !errdefs.IsNotFound(err) || len(b.Instances("q")) != 1 {
			t.Errorf("DeletePod of a pod that is denied: got %v, and %d run, want not-found and 1", err, len(b.Instances("q")))
		}
		b.Truth()
		if get, _ := shown(t, b, "q"); get != "q Running" {
			t.Errorf("after Truth: GetPod says %q", get)
		}
	})
}

func TestAnIdempotentBackendStartsAPodOnce(t *testing.T) {
	b := memory.New()
	b.Idempotent = true
	step := 0
	create := func() {
		t.Helper()
		p := pod("p", "u")
		step++
		p.Labels["step"] = fmt.Sprint(step)
		if err := b.CreatePod(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	create()
	create()
	if p := b.Has("d/p"); p.Labels["step"] != "2" || p.Status.Phase != corev1.PodRunning {
		t.Errorf("the backend has it with %v, %s, want what the second call said", p.Labels, p.Status.Phase)
	}
	if ids := b.Instances("u"); !slices.Equal(ids, []string{"i1"}) {
		t.Errorf("instances are %q, want i1", ids)
	}
	b.Lose("d/p")
	create()
	if ids := b.Instances("u"); !slices.Equal(ids, []string{"i2"}) {
		t.Errorf("after the loss instances are %q, want i2", ids)
	}
}
