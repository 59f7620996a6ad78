// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestUnreferencedObjectIsReadEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, configMapNamed("other", "1"))
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { h.wantValue("other", "1") })
		}
		synctest.Wait() // all five wait for Run
		h.run()
		defer h.end()
		all.Wait()
		if got := h.requests(); got["get"] != 1 || len(got) != 1 {
			t.Errorf("requests %v, want one get for five questions at once", got)
		}
		h.wantValue("other", "1")
		if _, err := h.value("none"); !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want not found", err)
		}
		if got := h.requests(); got["get"] != 2 || len(got) != 1 {
			t.Errorf("requests %v, want one get for each question", got)
		}
	})
}

func TestForgottenObjectsAreNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, configMapNamed("shared", "1"), configMapNamed("own", "2")).run()
		defer h.end()
		h.Track(podUsing("a", "shared", "own"))
		h.Track(podUsing("b", "shared"))
		again := podUsing("a", "shared") // the same name, another pod
		again.UID = "another"
		h.wantValue("shared", "1")
		h.wantValue("own", "2")
		for _, step := range []struct {
			name string
			do   func()
			want int
		}{
			{"two objects", func() {}, 2},
			{"a changed spec", func() { h.Track(podUsing("a", "shared")) }, 1},
			{"back again, nobody has asked yet", func() { h.Track(podUsing("a", "shared", "own")) }, 1},
			{"asked", func() { h.wantValue("own", "2") }, 2},
			{"another pod of the same name", func() { h.Track(again); h.Forget("ns", "a", "uid-a") }, 1},
			{"an unknown pod", func() { h.Forget("ns", "nobody", "uid") }, 1},
			{"one of two", func() { h.Forget("ns", "b", "uid-b") }, 1},
			{"the last", func() { h.Forget("ns", "a", "another") }, 0},
			{"twice", func() { h.Forget("ns", "a", "another") }, 0},
		} {
			step.do()
			if got := h.openWatches(); got != step.want {
				t.Errorf("%s: %d watches, want %d", step.name, got, step.want)
			}
		}
		if n := len(h.pods) + len(h.referrers) + len(h.Store.watches) + len(h.reads); n != 0 {
			t.Errorf("%d things are remembered for nobody", n)
		}
		h.takeChanged()
		h.requests()
		h.wantValue("own", "2")
		if got := h.requests(); got["get"] != 1 || len(got) != 1 {
			t.Errorf("requests %v, want a plain get", got)
		}
	})
}

func TestForgetWhileSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, configMapNamed("mine", "1"))
		h.Track(podUsing("a", "mine"))
		got := make(chan string)
		go func() {
			value, err := h.value("mine")
			got <- fmt.Sprint(value, err)
		}()
		synctest.Wait() // the caller waits for the watch, which Run has not started
		h.Forget("ns", "a", "uid-a")
		h.run()
		defer h.end()
		if value := <-got; value != "1<nil>" {
			t.Errorf("got %s, want the object by a plain get", value)
		}
		if requests := h.requests(); requests["watch"] != 0 {
			t.Errorf("requests %v, want no watch", requests)
		}
	})
}

func TestBeforeAndAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, configMapNamed("mine", "1"))
		h.Track(podUsing("a", "mine"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, name := range []string{"mine", "other"} {
			if _, err := h.ConfigMap(ctx, "ns", name); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s before Run: %v, want the end of the context", name, err)
			}
		}
		if got := h.requests(); len(got) != 0 {
			t.Errorf("requests before Run: %v", got)
		}
		h.run()
		// The store sent the request although its caller had given up.
		if got := h.takeChanged(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("told %v, want the pod that gave up", got)
		}
		h.wantValue("mine", "1")
		if err := h.Run(t.Context()); err == nil {
			t.Error("a second Run is no error")
		}
		h.end()
		h.requests()
		h.Track(podUsing("b", "new"))
		for _, name := range []string{"other", "new"} {
			if _, err := h.value(name); !errors.Is(err, errStopped) {
				t.Errorf("%s after Run: %v, want %v", name, err, errStopped)
			}
		}
		if _, err := h.ConfigMap(t.Context(), "ns", ""); err == nil {
			t.Error("a question without a name is no error")
		}
		if got := h.requests(); len(got) != 0 {
			t.Errorf("requests after Run: %v", got)
		}
	})
}
