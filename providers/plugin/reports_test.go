// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// told is a fake provider with configurable lists and reports.
type told struct {
	node.PodLifecycleHandler
	list   func(notify func(*corev1.Pod)) []*corev1.Pod
	notify func(*corev1.Pod)
}

func (l *told) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { l.notify = notify }

func (l *told) GetPods(context.Context) ([]*corev1.Pod, error) { return l.list(l.notify), nil }

func inPhase(name string, phase corev1.PodPhase) *corev1.Pod {
	p := pod(name, "u-"+name)
	p.Status.Phase = phase
	return p
}

// TestListNeverOvertakesAReport checks that every pod is reported after a connect. A report that arrives during
// the list takes precedence over the listed pod.
func TestListNeverOvertakesAReport(t *testing.T) {
	reported := make(chan struct{})
	p := &told{PodLifecycleHandler: newMock(), list: func(notify func(*corev1.Pod)) []*corev1.Pod {
		notify(inPhase("web", corev1.PodSucceeded))
		<-reported
		return []*corev1.Pod{inPhase("web", corev1.PodRunning), inPhase("quiet", corev1.PodRunning)}
	}}
	own, err := begun(t, Config{Endpoint: served(t, p)})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 10)
	own.notify = func(pod *corev1.Pod) {
		seen <- pod.Name + " " + string(pod.Status.Phase)
		if pod.Status.Phase == corev1.PodSucceeded {
			close(reported)
		}
	}
	run(t, own)
	for _, want := range []string{"web Succeeded", "quiet Running"} {
		if got := <-seen; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNoSpecsWithoutARestart checks that a plugin gets no specs after a broken connection, because it still has
// them.
func TestNoSpecsWithoutARestart(t *testing.T) {
	f := &forgetful{bare: &bare{newMock()}, updated: make(chan string, 10)}
	own, err := begun(t, Config{Endpoint: served(t, f)})
	if err != nil {
		t.Fatal(err)
	}
	p := run(t, own)
	eventually(t, "the node is ready", func() bool { return ping(t, p) == nil })
	if err := p.CreatePod(t.Context(), pod("web", "u1")); err != nil {
		t.Fatal(err)
	}
	first := own.currentSession()
	first.close(errors.New("cut by the test"))
	eventually(t, "it is connected again", func() bool { s := own.currentSession(); return s != nil && s != first })
	if len(f.updated) != 0 {
		t.Errorf("the plugin got %q again", <-f.updated)
	}
}
