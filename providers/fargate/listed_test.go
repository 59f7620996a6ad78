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
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestPodsOfTheClusterComeLate checks that nothing is reported about pods from before a restart until the pods
// of the cluster are known.
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
	p, err := newDriver(t.Context(), in, conf, quick)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.kit.RunInBackground(ctx) }()
	for asked.Load() < 3 {
		runtime.Gosched()
	}
	if p.kit.Cache().Synced() || p.kit.AnswersForAllPods() {
		t.Error("what the service has was listed before that")
	}
	there.Store(true)
	if err := p.kit.Cache().Wait(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestTaskThatListsAreLateToShowAfterARestart checks that a task that lists do not show yet is not reported as
// missing, and is found once lists show it.
func TestTaskThatListsAreLateToShowAfterARestart(t *testing.T) {
	c := cloudOf(t)
	before := open(t, c)
	if err := before.kit.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Stale(true)
	pod := podOf("late", program.Program{Stay: program.Forever})
	if err := before.kit.CreatePod(t.Context(), pod); err != nil {
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
	again := func(at service.Config) *driver {
		p, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node", ProviderConfig: nodeutil.ProviderConfig{Pods: corev1listers.NewPodLister(pods)}}, conf, at)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- p.kit.RunInBackground(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the provider's work in the background: %v", err)
			}
		})
		if err := p.kit.Cache().Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p
	}
	after := again(service.Config{Busy: quick.Busy, Rest: quick.Rest, Idle: time.Hour})
	if _, err := after.kit.GetPod(t.Context(), "shop", "late"); !errdefs.IsNotFound(err) || after.kit.AnswersForAllPods() {
		t.Errorf("the first list lacks it: got %v, and it answers for all pods: %t", err, after.kit.AnswersForAllPods())
	}
	c.Stale(false)
	until(t, after, "late", "running", isRunning)

	soon, tick := again(quick), everyMoment(t)
	for !soon.kit.AnswersForAllPods() {
		tick("it answers for all pods")
	}
}
