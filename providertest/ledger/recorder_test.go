// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

func TestLinesAreReadAgain(t *testing.T) {
	var file bytes.Buffer
	r := &ledger.Recorder{To: &file}
	r.Add(ledger.Entry{Verb: ledger.Create, Step: ledger.Begin, UID: "a", Namespace: "d", Name: "p"})
	r.Add(ledger.Entry{Verb: ledger.Report, UID: "a", Namespace: "d", Name: "p", Status: &corev1.PodStatus{Phase: corev1.PodRunning}})
	file.WriteString(`{"seq":3,"at":"20`) // killed while it wrote
	got, err := ledger.Read(&file)
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	if len(got) != 2 || got[0].Step != ledger.Begin || got[1].Seq != 2 || got[1].Status.Phase != corev1.PodRunning {
		t.Errorf("read %+v", got)
	}
	if _, err := ledger.Read(bytes.NewBufferString("no JSON\n")); err == nil {
		t.Error("a line that is no JSON was read without an error")
	}
}

func TestRetireJudgesAndForgets(t *testing.T) {
	r := &ledger.Recorder{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	broken := 0
	for i := range 20 {
		wg.Go(func() {
			uid, name := types.UID(fmt.Sprint("u", i)), fmt.Sprint("p", i)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: uid}}
			entry := ledger.Entry{UID: uid, Namespace: "d", Name: name, Instance: name}
			for range 5 {
				r.Saw(watch.Added, pod)
				for _, verb := range []ledger.Verb{ledger.Start, ledger.Stop} {
					entry.Verb = verb
					r.Add(entry)
				}
			}
			r.Saw(watch.Deleted, pod)
			violations := r.Retire(uid)
			mu.Lock()
			defer mu.Unlock()
			broken += len(violations)
		})
	}
	wg.Wait()
	if h := r.History(); broken != 0 || len(h.Ledger) != 0 || len(h.API) != 0 {
		t.Errorf("%d violations, %d entries and %d events are left, want none", broken, len(h.Ledger), len(h.API))
	}
	r.Add(ledger.Entry{Verb: ledger.Start, UID: "u3", Namespace: "d", Name: "p3", Instance: "late"})
	if got := r.Retire(); len(got) != 1 || got[0].Invariant != "S4" {
		t.Errorf("a retired pod started: got %v, want S4", got)
	}
}
