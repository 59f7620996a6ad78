// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// says returns a fault that makes the region answer an action with a text.
func says(action, text string) emulator.Fault {
	return emulator.Fault{Operations: []string{action}, Answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }}
}

// TestPodsOfTheClusterComeLate checks that nothing is reported about pods from before a restart until the pods
// of the cluster are known.
func TestPodsOfTheClusterComeLate(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	stop()
	if err := h.Pods.Delete(pod); err != nil {
		t.Fatal(err)
	}
	before, told := len(h.region.front.Requests()), len(h.ReportsOf(pod.UID))
	config, err := h.config.complete()
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	var there atomic.Bool
	in := h.Input()
	in.Listed = func() bool { asked.Add(1); return there.Load() }
	p.Provider, p.driver = newProvider(in, config, h.next)
	h.Run(p)
	h.Until("it was asked three times whether the pods are there", func() (bool, string) { return asked.Load() >= 3, "" })
	if got := len(h.region.front.Requests()) - before; got != 0 {
		t.Errorf("ECI was asked %d times before that", got)
	}
	if err := h.Pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	there.Store(true)
	h.UntilRuns(p, pod)
	for _, r := range h.ReportsOf(pod.UID)[told:] {
		if r.Status.Phase != corev1.PodRunning || len(r.Spec.Containers) != 1 {
			t.Errorf("reported %s with %d containers", r.Status.Phase, len(r.Spec.Containers))
		}
	}
}

// TestFirstListIsEmpty checks a restart after the right to read was lost. The pods of the cluster show which
// groups exist.
func TestFirstListIsEmpty(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	if err := h.Pods.Update(h.UntilRuns(p, pod)); err != nil {
		t.Fatal(err)
	}
	stop()
	mend := h.region.front.Break(says("DescribeContainerGroupStatus", `{"Data":[]}`))
	p, _ = h.start()
	h.Until("the list is not believed", func() (bool, string) {
		err, _ := p.Cache().LastError()
		return err != nil && strings.Contains(err.Error(), "is there"), errorText(err)
	})
	if p.Cache().Synced() {
		t.Error("the list was believed")
	}
	mend()
	h.UntilRuns(p, pod)
}

// TestLostGroupIsMadeAgain checks that a lost group is created again although ECI remembers the token of the
// lost one, also after a restart.
func TestLostGroupIsMadeAgain(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	for _, restarts := range []bool{false, false, true} {
		pod = h.UntilRuns(p, pod).DeepCopy()
		was, err := h.region.group(pod)
		if err != nil {
			t.Fatal(err)
		}
		h.region.Lose(was)
		if err := h.region.cloud.Lose(uid(was)); err != nil {
			t.Fatal(err)
		}
		h.UntilGone(p, pod)
		if restarts {
			stop()
			p, stop = h.start()
		}
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		h.UntilRuns(p, pod)
		if is, err := h.region.group(pod); err != nil || is == was {
			t.Errorf("the group is %s, %v, and was %s", is, err, was)
		}
	}
}

// TestGroupThatListsDoNotHave deletes a group that lists do not show. The answer to its create was lost with a
// restart.
func TestGroupThatListsDoNotHave(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.config.seenWithin = time.Hour
	p, _ := h.start()
	h.Until("ECI is well", func() (bool, string) { err := p.Ping(t.Context()); return err == nil, errorText(err) })
	if p.AnswersForAllPods() {
		t.Error("it answers for pods that lists may not have yet")
	}
	mend := h.region.front.Break(says("DescribeContainerGroupStatus", `{"Data":[]}`))
	pod := h.Pod("default", "web", stays())
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	if err := p.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err) {
		t.Errorf("delete of none: got %v", err)
	}
	r, err := p.Resolve(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	request, err := p.driver.mapping.group(resolved{r})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.driver.client.call(t.Context(), "CreateContainerGroup", request, &createAnswer{}); err != nil {
		t.Fatal(err)
	}
	h.Until("it is deleted", func() (bool, string) { // once ECI shows the group under its name
		err := p.DeletePod(t.Context(), pod)
		if err != nil && !errdefs.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil, errorText(err)
	})
	mend()
	h.UntilGone(p, pod)
	h.Until("the group is gone", func() (bool, string) { got := h.groups(pod); return len(got) == 0, fmt.Sprint(got) })
}

// TestGroupThatListsAreLateToShowAfterARestart checks that a group that lists do not show yet is not reported as
// missing, and is found once lists show it.
func TestGroupThatListsAreLateToShowAfterARestart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.config.idle = time.Hour
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	pod = pod.DeepCopy()
	pod.Status.StartTime = new(metav1.Now())
	if err := h.Pods.Update(pod); err != nil {
		t.Fatal(err)
	}
	stop()
	mend := h.region.front.Break(says("DescribeContainerGroupStatus", `{"Data":[]}`))
	h.config.seenWithin = time.Hour
	late, _ := h.start()
	if err := late.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := late.GetPod(t.Context(), pod.Namespace, pod.Name); !errdefs.IsNotFound(err) || late.AnswersForAllPods() {
		t.Errorf("the first list lacks it: got %v, and it answers for all pods: %t", err, late.AnswersForAllPods())
	}
	mend()
	h.UntilRuns(late, pod)

	h.config.seenWithin, h.config.idle = time.Second, 500*time.Millisecond
	soon, _ := h.start()
	h.Until("it answers for all pods", func() (bool, string) { return soon.AnswersForAllPods(), "" })
}

// TestCreateWithoutAnID checks an answer that does not show whether ECI made a group.
func TestCreateWithoutAnID(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	mend := h.region.front.Break(says("CreateContainerGroup", `{"RequestId":"1"}`))
	pod := h.Pod("default", "web", stays())
	if err := p.CreatePod(t.Context(), pod); err == nil || errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err) {
		t.Errorf("got %v, want an error that passes", err)
	}
	if got, err := p.GetPods(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	mend()
	h.Create(p, pod)
	h.UntilRuns(p, pod)
}
