// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ran returns the status of a container that started at a time.
func ran(id string, restarts int32, at time.Time) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", ContainerID: id, RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}}}
}

func TestMissingRestarts(t *testing.T) {
	begin := time.Now()
	for name, tt := range map[string]struct {
		home   corev1.PodStatus
		remote corev1.PodStatus
		before string // restarts before the object was made
		want   int32
	}{
		"it never ran":                            {home: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}}}, remote: ran("a", 0, begin)},
		"the same container":                      {home: ran("a", 0, begin), remote: ran("a", 0, begin)},
		"restarted over there while nobody saw":   {home: ran("a", 0, begin), remote: ran("b", 1, begin.Add(time.Second))},
		"the same container of a pod made again":  {home: ran("c", 2, begin), remote: ran("c", 0, begin), want: 2},
		"another pod, made while nobody saw":      {home: ran("a", 2, begin.Add(-time.Minute)), remote: ran("b", 0, begin), want: 3},
		"another pod in the same second":          {home: ran("a", 2, begin), remote: ran("b", 0, begin), want: 3},
		"another pod that does not run yet":       {home: ran("a", 0, begin), remote: corev1.PodStatus{Phase: corev1.PodPending}, want: 1},
		"another pod that has been restarted":     {home: ran("a", 2, begin.Add(-time.Minute)), remote: ran("c", 1, begin), want: 3},
		"made by the node again, which counted":   {home: ran("a", 2, begin.Add(-time.Minute)), remote: ran("b", 0, begin), before: `{"main":3}`},
		"made by the node again, and then remade": {home: ran("b", 3, begin.Add(-time.Minute)), remote: ran("c", 0, begin), before: `{"main":3}`, want: 1},
	} {
		remote := remotePod(tt.remote)
		remote.CreationTimestamp = metav1.NewTime(begin.Add(-time.Second))
		if tt.before != "" {
			remote.Annotations[annotationRestarts] = tt.before
		}
		if got := missingRestarts(&tt.home, remote)["main"]; got != tt.want {
			t.Errorf("%s: got %d restarts of before, want %d", name, got, tt.want)
		}
	}
}

// startRemade returns a cluster whose controller makes removed pods again, and an owner object.
func startRemade(t *testing.T) (c *Cluster, owner *corev1.Pod) {
	t.Helper()
	c, _, _ = startOwners(t)
	c.owners.kind.Remakes = true
	owner = ofHome(corev1.PodRunning)
	owner.Kind = makerKind.Kind
	return c, owner
}

func TestRemadePodIsOnePod(t *testing.T) {
	c, owner := startRemade(t)
	pod := ofHome("")
	pod.Status = ran("a", 1, time.Now())
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	c.runs.recordPod(pod)
	if err := c.cache.owners.GetStore().Add(owner); err != nil {
		t.Fatal(err)
	}
	removed := pod.DeepCopy()
	now := metav1.Now()
	removed.DeletionTimestamp, removed.Status.Phase = &now, corev1.PodSucceeded
	c.runs.recordPod(removed)
	if s := c.podAtHome(removed).Status; s.Phase != corev1.PodRunning || s.Reason != reasonRemoved {
		t.Errorf("a pod that somebody removes, and that comes back, is %s %s, want Running and who removes it", s.Phase, s.Reason)
	}
	s := c.podAtHome(owner).Status
	if s.Phase != corev1.PodRunning || s.Conditions[0].Status != corev1.ConditionFalse || s.ContainerStatuses[0].State.Running != nil || s.ContainerStatuses[0].RestartCount != 1 {
		t.Errorf("between two pods there is %+v, want a pod that runs and whose container waits", s)
	}
	next := pod.DeepCopy()
	next.UID, next.Status = "next", ran("b", 0, time.Now())
	c.runs.recordPod(next)
	if got := c.podAtHome(next).Status.ContainerStatuses[0].RestartCount; got != 2 {
		t.Errorf("the next pod has %d restarts, want 2", got)
	}
}

// TestRestartsOfARemadeObject checks the restart count of the pods of a recreated owner object. The annotation of the object and of
// each of its pods has the earlier restarts.
func TestRestartsOfARemadeObject(t *testing.T) {
	c, _ := startRemade(t)
	pod := ofHome("")
	pod.Annotations[annotationRestarts] = `{"main": 1}`
	for i := range int32(4) {
		next := pod.DeepCopy()
		id := fmt.Sprint("run-", i)
		next.UID, next.Status = types.UID(id), ran(id, 0, time.Now())
		c.runs.recordPod(next)
		if got := c.podAtHome(next).Status.ContainerStatuses[0].RestartCount; got != 1+i {
			t.Errorf("pod %d shows %d restarts, want %d", i, got, 1+i)
		}
	}
}

func TestWhatIsKeptWithoutAPod(t *testing.T) {
	for name, tt := range map[string]struct {
		phase   corev1.PodPhase      // the phase of the object
		restart corev1.RestartPolicy // "": Never
		saw     func(*corev1.Pod)
		keeps   bool
		shows   corev1.PodPhase
	}{
		"it is to be made": {phase: "", keeps: true, shows: corev1.PodPending},
		"it is unknown":    {phase: corev1.PodUnknown, keeps: true, shows: corev1.PodPending},
		"it comes back":    {phase: corev1.PodRunning, saw: func(*corev1.Pod) {}, keeps: true, shows: corev1.PodRunning},
		"it ended":         {phase: corev1.PodSucceeded, saw: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, keeps: true, shows: corev1.PodSucceeded},
		"it was removed, and so it ended": {phase: corev1.PodSucceeded, saw: func(p *corev1.Pod) {
			now := metav1.Now()
			p.Status.Phase, p.DeletionTimestamp = corev1.PodSucceeded, &now
		}, shows: corev1.PodRunning},
		"nobody saw how it ended": {phase: corev1.PodFailed, shows: corev1.PodPending},
		"always made again":       {phase: corev1.PodFailed, restart: corev1.RestartPolicyAlways, keeps: true, shows: corev1.PodPending},
		"made again until it succeeds": {phase: corev1.PodFailed, restart: corev1.RestartPolicyOnFailure, keeps: true,
			shows: corev1.PodPending},
		"it may have succeeded": {phase: corev1.PodSucceeded, restart: corev1.RestartPolicyOnFailure, shows: corev1.PodPending},
	} {
		c, owner := startRemade(t)
		owner.Status.Phase, owner.Spec.RestartPolicy = tt.phase, cmp.Or(tt.restart, corev1.RestartPolicyNever)
		if tt.saw != nil {
			pod := ofHome(corev1.PodRunning)
			pod.UID = types.UID("pod")
			tt.saw(pod)
			c.runs.recordPod(pod)
		}
		if got := c.runs.keepsObject(owner); got != tt.keeps {
			t.Errorf("%s: the object is kept: %t, want %t", name, got, tt.keeps)
		}
		if got := c.podAtHome(owner).Status.Phase; got != tt.shows {
			t.Errorf("%s: the pod is %s, want %s", name, got, tt.shows)
		}
	}
}

func TestImagesOfContainers(t *testing.T) {
	have := []corev1.Container{{Name: "a", Image: "a:1", Args: []string{"x"}}, {Name: "b", Image: "b:1"}}
	got, differ := withImages(have, map[string]string{"a": "a:2", "b": "b:1"})
	if !differ || got[0].Image != "a:2" || len(got[0].Args) != 1 || got[1].Image != "b:1" || have[0].Image != "a:1" {
		t.Errorf("got %v (%t), want the containers with one other image", got, differ)
	}
	if _, differ := withImages(have, map[string]string{"a": "a:1"}); differ {
		t.Error("the same images differ")
	}
}

// TestObjectWithoutAPodIsTold checks that the missing pod of an owner object is reported once, if the controller does not run.
func TestObjectWithoutAPodIsTold(t *testing.T) {
	c, owner := startRemade(t)
	owner.Status.Phase = ""
	told := []string{}
	c.NotifyPods(t.Context(), func(pod *corev1.Pod) { told = append(told, pod.Status.Message) })
	tell := func(age time.Duration, want int) {
		t.Helper()
		owner = owner.DeepCopy()
		owner.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		if err := c.cache.owners.GetStore().Add(owner); err != nil {
			t.Fatal(err)
		}
		if c.tellLate(); len(told) != want {
			t.Errorf("after %s it was told %q, want %d times", age, told, want)
		}
	}
	tell(time.Second, 0)
	tell(time.Minute, 1)
	tell(time.Hour, 1)
	if len(told) > 0 && !strings.Contains(told[0], "has not made the pod of Maker") {
		t.Errorf("told: %q", told[0])
	}
	if err := c.cache.owners.GetStore().Delete(owner); err != nil {
		t.Fatal(err)
	}
	if c.recordGone(owner); len(c.late) > 0 {
		t.Error("what is gone is remembered")
	}
}
