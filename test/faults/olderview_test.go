// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// travel shows the daemon the lists of pods at an older revision, and nothing newer, until back is called. A
// request for one pod gets the present pod, as from an API server that asks the others.
func (w *world) travel(revision string) (back func()) {
	w.Helper()
	pods := func(verb string) func(faultproxy.Request) bool { return faultproxy.Is("pods", verb) }
	all := func(r faultproxy.Request) bool { return pods("list")(r) && !strings.Contains(r.Path, "metadata.name") }
	older := w.proxy.Inject(faultproxy.Fault{On: all, Revision: revision})
	expired := w.proxy.Inject(faultproxy.Fault{On: pods("watch"), Status: http.StatusGone})
	silent := w.proxy.Inject(faultproxy.Fault{On: pods("watch"), Silent: true})
	began := time.Now()
	w.proxy.CutWatches(faultproxy.Is("pods"))
	gone := func(r faultproxy.Request) bool {
		return r.At.After(began) && r.Resource == "pods" && r.Status == http.StatusGone
	}
	w.awaitRequests(1, gone)
	expired()
	w.awaitRequests(1, func(r faultproxy.Request) bool {
		return r.At.After(began) && r.Resource == "pods" && r.Verb == "watch" && r.Injected && r.Status == http.StatusOK
	})
	return func() {
		older()
		silent()
		w.proxy.CutWatches(faultproxy.Is("pods"))
	}
}

// TestFault14OlderViewDestroysNothing: an API server shows the daemon an older state, in which some pods do not
// exist yet and some deleted pods still exist. The daemon neither deletes nor creates a pod because of it.
func TestFault14OlderViewDestroysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts = append(w.opts, limited(200, 200))
	w.start()
	n, some := inForm(100, 1000), inForm(8, 150)
	first := w.startMany("first", n-some)
	list, err := w.podClient().List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	newer := w.createMany("newer", some)
	w.awaitRunning(n)
	gone := first[:some]
	w.removeMany(gone, *metav1.NewDeleteOptions(1))
	w.awaitRunning(n - some)
	began := time.Now()

	back := w.travel(list.ResourceVersion)
	lasts := inForm(16*time.Second, time.Minute) // longer than any absence needs to count
	w.sleep(lasts)
	wrongDeletes, wrongCreates := w.wrong(began, gone)
	back()
	added := w.create(w.pod("added"))
	w.awaitPod(added.Name, "runs", running)
	w.awaitRunning(n - some + 1)
	deletes, creates := w.wrong(began, gone)
	if wrongDeletes+deletes > 0 || wrongCreates+creates > 0 {
		t.Errorf("in the older view: %d deletes and %d creates, after it: %d and %d; want none",
			wrongDeletes, wrongCreates, deletes, creates)
	}
	for _, name := range append(newer, first[some:]...) {
		if w.backend.Has(w.key(name)) == nil {
			t.Errorf("the backend has lost pod %s", name)
		}
	}
	faultrow.Record(t, 14, fmt.Sprintf("lists of %d pods from before %d were created and %d deleted, for %v", n, some, some, lasts),
		"wrongful deletes %d, wrongful creates %d", deletes, creates)
}

// wrong counts the deletes of pods that still exist, and the creates of pods other than the added one. A
// repeated delete of a deleted pod is not wrong.
func (w *world) wrong(since time.Time, gone []string) (deletes, creates int) {
	for _, c := range w.calls.since(since, "create", "delete") {
		switch {
		case c.verb == "create" && c.name != "added":
			creates++
		case c.verb == "delete" && !contains(gone, c.name):
			deletes++
		}
	}
	return deletes, creates
}

// TestFault14RestartAsksForTheLatest: a daemon restarts in front of an API server that lags behind. The API
// server answers lists at resource version 0 with an older state, so the daemon must ask for the latest version.
func TestFault14RestartAsksForTheLatest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	daemon := w.start()
	gone := w.startMany("gone", 3)
	list, err := w.podClient().List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.removeMany(gone, *metav1.NewDeleteOptions(1))
	w.pods.await(t, "the pods are gone", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	newer := w.startMany("newer", 5)
	daemon.stop()

	began := time.Now()
	lagging := func(r faultproxy.Request) bool {
		return r.Verb == "list" && r.Resource == "pods" && strings.Contains(r.Path, "resourceVersion=0")
	}
	defer w.proxy.Inject(faultproxy.Fault{On: lagging, Revision: list.ResourceVersion})()
	w.start()
	w.sleep(12 * time.Second) // longer than an unknown pod is protected
	w.awaitRunning(len(newer))
	w.untouched(began)
	stale := w.proxy.Count(func(r faultproxy.Request) bool { return r.At.After(began) && lagging(r) })
	faultrow.Record(t, 14, "restart in front of an API server that answers lists at resource version 0 with the past",
		"lists that could be old %d, wrongful deletes and creates %d", stale, len(w.calls.since(began, "create", "delete")))
}
