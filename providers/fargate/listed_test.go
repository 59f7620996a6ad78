// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestPodsOfTheClusterComeLate: until they are there, nothing is said of the pods from before a restart.
func TestPodsOfTheClusterComeLate(t *testing.T) {
	c := cloudOf(t)
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	var there atomic.Bool
	in := cli.ProviderInput{NodeName: "node"}
	in.Listed = func() bool { asked.Add(1); return there.Load() }
	p, err := newProvider(t.Context(), in, conf, quick)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.RunInBackground(ctx) }()
	for asked.Load() < 3 {
		runtime.Gosched()
	}
	if p.cache.Synced() || p.AnswersForAllPods() {
		t.Error("what the service has was listed before that")
	}
	there.Store(true)
	if err := p.cache.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestTaskThatListsAreLateToShowAfterARestart: nobody says that ECS does not have it, and it is found as soon as lists show it.
func TestTaskThatListsAreLateToShowAfterARestart(t *testing.T) {
	c := cloudOf(t)
	before := open(t, c)
	if err := before.cache.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Stale(true)
	pod := podOf("late", program.Program{Stay: program.Forever})
	if err := before.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.StartTime = new(metav1.Now())
	pods := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if err := pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	conf.Queue = ""
	again := func(at pace) *provider {
		p, err := newProvider(t.Context(), cli.ProviderInput{NodeName: "node", ProviderConfig: nodeutil.ProviderConfig{Pods: corev1listers.NewPodLister(pods)}}, conf, at)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- p.RunInBackground(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the provider's work in the background: %v", err)
			}
		})
		if err := p.cache.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p
	}
	after := again(pace{busy: quick.busy, rest: quick.rest, idle: time.Hour})
	if _, err := after.GetPod(t.Context(), "shop", "late"); !errdefs.IsNotFound(err) || after.AnswersForAllPods() {
		t.Errorf("the first list lacks it: got %v, and it answers for all pods: %t", err, after.AnswersForAllPods())
	}
	c.Stale(false)
	until(t, after, "late", "running", isRunning)

	soon, tick := again(quick), everyMoment(t)
	for !soon.AnswersForAllPods() {
		tick("it answers for all pods")
	}
}
