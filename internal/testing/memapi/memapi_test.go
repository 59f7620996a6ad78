// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name}, Spec: corev1.PodSpec{NodeName: "n"}}
}

// received returns the available events of a watch, without waiting for more.
func received(w watch.Interface) (out []string) {
	for {
		synctest.Wait()
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return append(out, "end")
			}
			name := ""
			if p, ok := e.Object.(*corev1.Pod); ok {
				name = " " + p.Name
			}
			out = append(out, string(e.Type)+name)
		default:
			return out
		}
	}
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func names(t *testing.T, a *API, version string) (out []string) {
	t.Helper()
	list, err := a.Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		out = append(out, p.Name)
	}
	return append(out, "at "+list.ResourceVersion)
}

func watchFrom(t *testing.T, a *API, revision int64) watch.Interface {
	t.Helper()
	seconds := int64(300)
	w, err := a.Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: fmt.Sprint(revision), TimeoutSeconds: &seconds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func TestLagShowsOldPodsUntilItCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New()
		a.Create(pod("a"))
		old := watchFrom(t, a, 0)
		a.Create(pod("b"))
		a.Delete("d", "a", 0)
		a.Lag(1, false)
		want(t, received(old), "ADDED a", "ADDED b", "MODIFIED a", "DELETED a", "end")
		want(t, names(t, a, "0"), "a", "at 1")
		want(t, names(t, a, ""), "b", "at 4")
		if _, err := a.Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "4"}); !apierrors.IsTimeout(err) {
			t.Errorf("a list of the future got %v, want a time-out", err)
		}
		behind, ahead := watchFrom(t, a, 0), watchFrom(t, a, 4)
		a.Create(pod("c"))
		want(t, received(behind), "ADDED a")
		want(t, received(ahead))
		a.CatchUp()
		want(t, received(behind), "ADDED b", "MODIFIED a", "DELETED a", "ADDED c")
		want(t, received(ahead), "ADDED c")

		a.Lag(1, true)
		want(t, names(t, a, ""), "a", "at 1")
		if _, err := a.Pods("d").Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("a read of a pod that is too young got %v, want not-found", err)
		}
	})
}

func TestRestoreGoesBackAndTellsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New()
		a.Create(pod("a"))
		a.Create(pod("b"))
		a.Delete("d", "a", 0)
		w := watchFrom(t, a, 4)
		a.Restore(1)
		want(t, received(w), "end")
		want(t, names(t, a, ""), "a", "at 1")
		behind := watchFrom(t, a, 4)
		a.Create(pod("c")) // revisions 2 to 4 mean something else now
		a.Create(pod("d"))
		a.Create(pod("e"))
		want(t, received(behind))
		a.Create(pod("f"))
		want(t, received(behind), "ADDED f")
		var events []string
		for _, v := range a.History("")[:6] {
			events = append(events, fmt.Sprint(v.Kind, " ", v.Pod.Name, " ", v.By))
		}
		want(t, events, "ADDED a test", "ADDED b test", "MODIFIED a test", "DELETED a test", "DELETED b accident", "ADDED a accident")
	})
}

// TestShorterGraceEndsNotInThePast: a shorter grace period whose time has already passed ends in one second.
func TestShorterGraceEndsNotInThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New()
		for _, name := range []string{"a", "b"} {
			p := pod(name)
			p.Finalizers = []string{"x/y"}
			a.Create(p)
			a.Delete("d", name, 300)
		}
		begin := time.Now()
		time.Sleep(10 * time.Second)
		for _, step := range []struct {
			name       string
			grace      int64
			wantGrace  int64
			wantSecond int
		}{{"a", 60, 60, 60}, {"a", 5, 1, 10}, {"a", 0, 0, 10}, {"b", 0, 0, 10}} {
			a.Delete("d", step.name, step.grace)
			got := a.Pod("d", step.name)
			if want := begin.Add(time.Duration(step.wantSecond) * time.Second); *got.DeletionGracePeriodSeconds != step.wantGrace || !got.DeletionTimestamp.Time.Equal(want) {
				t.Errorf("%s, shortened to %d: grace %d until %v, want %d until %v", step.name, step.grace, *got.DeletionGracePeriodSeconds, got.DeletionTimestamp, step.wantGrace, want)
			}
		}
	})
}

func TestSilentWatchEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New()
		w := watchFrom(t, a, 0)
		a.Silence()
		a.Create(pod("a"))
		time.Sleep(299 * time.Second)
		want(t, received(w))
		time.Sleep(2 * time.Second)
		want(t, received(w), "end")
		want(t, received(watchFrom(t, a, 0)), "ADDED a")
	})
}

func TestLostAnswerTookEffect(t *testing.T) {
	a := New()
	a.Create(pod("a"))
	timeout := errors.New("time-out")
	a.Lost = func(verb, _, _ string) error {
		if verb == "delete" {
			return timeout
		}
		return nil
	}
	if err := a.Pods("d").Delete(t.Context(), "a", metav1.DeleteOptions{}); !errors.Is(err, timeout) {
		t.Errorf("got %v, want the time-out", err)
	}
	last := a.History("d/a")[1]
	if last.By != Client || last.Pod.DeletionTimestamp == nil {
		t.Errorf("got %+v, want the client's deletion", last)
	}
}

// TestEndsAreNotTakenBack: as at the API server, an ended container cannot run again, by the rules of each list
// of containers.
func TestEndsAreNotTakenBack(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	always := corev1.ContainerRestartPolicyAlways
	old := pod("a")
	old.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	old.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
	old.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "own-policy", RestartPolicy: &always}}
	for _, name := range []string{"init", "sidecar"} {
		old.Status.InitContainerStatuses = append(old.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: ended})
	}
	for _, name := range []string{"main", "own-policy"} {
		old.Status.ContainerStatuses = append(old.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: ended})
	}
	old.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", State: ended}}
	now := old.DeepCopy()
	for _, list := range [][]corev1.ContainerStatus{now.Status.InitContainerStatuses, now.Status.ContainerStatuses, now.Status.EphemeralContainerStatuses} {
		for i := range list {
			list[i].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}
	}
	var refused []string
	for _, err := range invalidParts(old, now) {
		refused = append(refused, err.Field)
	}
	want(t, refused, "status.containerStatuses[0].state", "status.initContainerStatuses[0].state", "status.ephemeralContainerStatuses[0].state")
	old.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	if got := invalidParts(old, now); len(got) != 1 || got[0].Field != "status.ephemeralContainerStatuses[0].state" {
		t.Errorf("with a rule that restarts all containers: got %v", got)
	}
}
