// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestReferencedObjectHasOneWatchByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, configMapNamed("mine", "1"), configMapNamed("foreign", "x"), secretNamed("mine", "s")).run()
		defer h.end()
		pod := podUsing("a", "mine")
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "mine"}}
		h.Track(pod)
		if got := h.requests(); len(got) != 0 {
			t.Errorf("requests before the first question: %v", got)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { h.wantValue("mine", "1") })
		}
		all.Wait()
		if s, err := h.Secret(t.Context(), "ns", "mine"); err != nil || string(s.Data["k"]) != "s" {
			t.Errorf("Secret: %v, %v", s, err)
		}
		synctest.Wait()
		for _, action := range h.api.Actions() {
			var selector, version string
			switch a := action.(type) {
			case clienttesting.ListActionImpl:
				selector, version = a.ListOptions.FieldSelector, a.ListOptions.ResourceVersion
			case clienttesting.WatchActionImpl:
				selector = a.ListOptions.FieldSelector
			}
			if selector != "metadata.name=mine" || action.GetNamespace() != "ns" || version != "" {
				t.Errorf("%s %s in namespace %q with selector %q from version %q; want the latest version of one object",
					action.GetVerb(), action.GetResource().Resource, action.GetNamespace(), selector, version)
			}
		}
		if got := h.requests(); got["list"] != 2 || got["watch"] != 2 || len(got) != 2 {
			t.Errorf("requests %v, want one list and one watch for each of the two objects", got)
		}
		if got := h.takeChanged(); len(got) != 0 {
			t.Errorf("told %v, although nothing changed", got)
		}
	})
}

func TestMissingObjectWakesItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t).run()
		defer h.end()
		h.Track(podUsing("a", "late"))
		h.Track(podUsing("b", "late"))
		h.Track(podUsing("c", "other"))
		for range 50 {
			if _, err := h.value("late"); !apierrors.IsNotFound(err) {
				t.Fatalf("error %v, want not found", err)
			}
		}
		if got := h.requests(); got["list"] != 1 || got["get"] != 0 {
			t.Errorf("requests %v, want one list for 50 questions", got)
		}
		for _, step := range []struct {
			do   func() error
			want string
		}{
			{func() error {
				_, err := h.api.CoreV1().ConfigMaps("ns").Create(t.Context(), configMapNamed("late", "1"), metav1.CreateOptions{})
				return err
			}, "1"},
			{func() error {
				_, err := h.api.CoreV1().ConfigMaps("ns").Update(t.Context(), configMapNamed("late", "2"), metav1.UpdateOptions{})
				return err
			}, "2"},
		} {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			if got := h.takeChanged(); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("told %v, want a and b", got)
			}
			h.wantValue("late", step.want)
		}
		if err := h.api.CoreV1().ConfigMaps("ns").Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := h.takeChanged(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("told %v, want a and b", got)
		}
		if _, err := h.value("late"); !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want not found", err)
		}
		if _, err := h.api.CoreV1().ConfigMaps("ns").Create(t.Context(), configMapNamed("unrelated", "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := h.takeChanged(); len(got) != 0 {
			t.Errorf("told %v of an object that nobody references", got)
		}
	})
}

func TestFailureIsAnAnswerAndIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, configMapNamed("mine", "1")).run()
		defer h.end()
		h.Track(podUsing("a", "mine"))
		for name, failure := range map[string]error{
			"referenced":     apierrors.NewForbidden(corev1.Resource("configmaps"), "mine", errors.New("no relationship found")),
			"not referenced": errors.New("connection refused"),
		} {
			h.setFail(failure)
			asked := map[string]string{"referenced": "mine", "not referenced": "other"}[name]
			before := time.Now()
			_, err := h.value(asked)
			if !errors.Is(err, failure) || apierrors.IsNotFound(err) || time.Since(before) > 0 {
				t.Errorf("%s: %v after %s, want %v at once", name, err, time.Since(before), failure)
			}
		}
		h.takeChanged()
		time.Sleep(10 * time.Minute) // the backoff grows up to a limit
		h.setFail(nil)
		time.Sleep(time.Minute)
		if got := h.takeChanged(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("told %v, want the pod that could not be served", got)
		}
		h.wantValue("mine", "1")
		lists := h.requests()["list"]
		if lists < 10 || lists > 60 {
			t.Errorf("%d lists in 11 minutes of failure, want a growing delay of at most a minute", lists)
		}
		h.setFail(errors.New("connection refused"))
		h.wantValue("mine", "1") // the last known value is served
	})
}

func TestImmutableObjectIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fixed, secret := configMapNamed("fixed", "1"), secretNamed("fixed", "s")
		fixed.Immutable, secret.Immutable = ptr.To(true), ptr.To(true)
		h := newHarness(t, fixed, secret).run()
		defer h.end()
		pod := podUsing("a", "fixed")
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "fixed"}}
		h.Track(pod)
		h.wantValue("fixed", "1")
		if _, err := h.Secret(t.Context(), "ns", "fixed"); err != nil {
			t.Error(err)
		}
		if n := h.openWatches(); n != 0 {
			t.Errorf("%d watches of immutable objects", n)
		}
		h.requests()
		time.Sleep(time.Hour)
		h.wantValue("fixed", "1")
		if got := h.requests(); len(got) != 0 {
			t.Errorf("requests %v, want none", got)
		}
		h.Forget("ns", "a", "uid-a")
		h.wantValue("fixed", "1")
		if got := h.requests(); got["get"] != 1 {
			t.Errorf("requests %v: the object is still remembered for nobody", got)
		}
	})
}
