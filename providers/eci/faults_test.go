// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
)

// writes returns the number of modifying requests.
func (h *home) writes() int {
	return len(h.region.front.Requests("CreateContainerGroup", "DeleteContainerGroup"))
}

func (h *home) groups(pod *corev1.Pod) []string {
	return h.region.Groups(identity.TagUID, string(pod.UID))
}

// TestCreateWithoutAnAnswer checks that there is only one group after a silent server, a lost answer, and a
// changed Secret.
func TestCreateWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.Put("default", "own", "before")
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/own"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}}}}
	if err := h.Pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	try := func(f emulator.Fault) error {
		f.Operations = []string{"CreateContainerGroup"}
		mend := h.region.front.Break(f)
		defer mend()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return p.CreatePod(ctx, pod.DeepCopy())
	}
	for name, f := range map[string]emulator.Fault{
		"silence":   {Hang: true},
		"a failure": {Answer: eci.Refuse(http.StatusInternalServerError, "InternalError", "try later")},
	} {
		if err := try(f); err == nil || errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err) {
			t.Errorf("%s: got %v, want an error that passes", name, err)
		}
	}
	mend := h.region.front.Break(emulator.Fault{Operations: []string{"DescribeContainerGroupStatus"}, Hang: true}) // no list shows it
	if err := try(emulator.Fault{Lose: true}); err == nil || errdefs.IsInvalidInput(err) {
		t.Errorf("an answer that is lost: got %v, want an error that passes", err)
	}
	h.Put("default", "own", "after")
	h.Until("the group is found with another Secret", func() (bool, string) { // once lists of ECI show it
		err := try(emulator.Fault{Times: 1, Delay: time.Millisecond})
		if errdefs.IsInvalidInput(err) {
			t.Fatalf("with another Secret: %v", err)
		}
		return err == nil, errorText(err)
	})
	mend()
	h.UntilRuns(p, pod)
	if got := h.groups(pod); len(got) != 1 {
		t.Errorf("the pod has the groups %v", got)
	}
}

// TestSecondGroupIsRemoved checks that a second group of a pod, made after ECI forgot the token of the first, is
// removed.
func TestSecondGroupIsRemoved(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	first := h.groups(pod)[0]
	h.Until("the clock of ECI goes on a second", func() (bool, string) { return time.Since(h.region.Created(first)) > time.Second, "" })
	r, err := p.Resolve(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	request, err := p.driver.mapping.group(resolved{r})
	if err != nil {
		t.Fatal(err)
	}
	request.ClientToken = "another"
	if err := p.driver.client.call(t.Context(), "CreateContainerGroup", request, &createAnswer{}); err != nil {
		t.Fatal(err)
	}
	p.Cache().Hurry()
	h.Until("the second group is gone", func() (bool, string) {
		got := h.groups(pod)
		return len(got) == 1 && len(h.region.front.Requests("DeleteContainerGroup")) > 0, fmt.Sprint(got)
	})
	if got := h.groups(pod); len(got) != 1 || got[0] != first {
		t.Errorf("the pod has %v, want the first one, %s", got, first)
	}
	h.UntilRuns(p, pod)
}

// TestRestartWritesNothing checks that one list finds the pods with and without init containers again.
func TestRestartWritesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, stop := h.start()
	var pods []*corev1.Pod
	for i := range 45 {
		pods = append(pods, h.Pod("default", fmt.Sprint("web-", i), stays()))
		h.Create(p, pods[i])
	}
	for _, pod := range pods {
		h.UntilRuns(p, pod)
	}
	stop()
	before, all := h.writes(), len(h.region.front.Requests())
	p, _ = h.start()
	for _, pod := range pods {
		h.UntilRuns(p, pod)
	}
	if got := h.writes() - before; got != 0 {
		t.Errorf("the restart wrote %d times", got)
	}
	if got := len(h.region.front.Requests("DescribeContainerGroups")); got != 3 { // in requests of 20 groups each
		t.Errorf("whose 45 groups are was asked for %d times, want 3", got)
	}
	first := len(h.region.front.Requests()) - all
	h.Until("ten more lists", func() (bool, string) { return len(h.region.front.Requests())-all >= first+10, "" })
	for _, r := range h.region.front.Requests()[all+first:] {
		if r.Operation != "DescribeContainerGroupStatus" {
			t.Errorf("at rest it asks for %s", r.Operation)
		}
	}
}

// TestDarkRegion checks a region that throttles, is silent, or is broken: no pod is lost, the node reports the
// problem, and it recovers.
func TestDarkRegion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault emulator.Fault
		says  string
	}{
		"throttled": {emulator.Fault{Answer: eci.Refuse(http.StatusBadRequest, "Throttling.User", "slow down")}, "Throttling.User"},
		"broken":    {emulator.Fault{Answer: eci.Refuse(http.StatusServiceUnavailable, "ServiceUnavailable", "later")}, "ServiceUnavailable"},
		"nonsense":  {emulator.Fault{Answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }}, "no JSON"},
		"empty":     {emulator.Fault{Operations: []string{"DescribeContainerGroupStatus"}, Answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"Data":[]}`)) }}, "is there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			p, _ := h.start()
			pod := h.Pod("default", "web", stays())
			h.Create(p, pod)
			h.UntilRuns(p, pod)
			mend := h.region.front.Break(c.fault)
			h.Until("the node says so", func() (bool, string) {
				err := p.Ping(t.Context())
				return err != nil && strings.Contains(err.Error(), c.says), errorText(err)
			})
			if p.AnswersForAllPods() {
				t.Error("it answers for all pods")
			}
			got, err := p.GetPod(t.Context(), "default", "web")
			if err != nil || got.Status.Phase != corev1.PodRunning {
				t.Errorf("the pod is %v, %v", got, err)
			}
			mend()
			h.Until("the node is well", func() (bool, string) { err := p.Ping(t.Context()); return err == nil, errorText(err) })
			h.UntilRuns(p, pod)
			if got := h.groups(pod); len(got) != 1 || h.writes() != 1 {
				t.Errorf("the pod has %v after %d writes", got, h.writes())
			}
		})
	}
}
