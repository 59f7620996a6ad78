// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestManyPodsAtOnce creates, reads and deletes 2,000 pods from many goroutines; run it with -race.
func TestManyPodsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newProvider(t, Config{})
	const pods = 2000
	var gone sync.WaitGroup
	gone.Add(pods)
	p.NotifyPods(ctx, func(pod *corev1.Pod) {
		if pod.Status.Reason == reasonPodDeleted {
			gone.Done()
		}
	})
	var work sync.WaitGroup
	addresses := sync.Map{}
	for w := range 20 {
		work.Go(func() {
			for i := range pods / 20 {
				name := fmt.Sprintf("pod-%d-%d", w, i)
				pod := newPod(name)
				if err := p.CreatePod(ctx, pod); err != nil {
					t.Error(err)
				}
				got, err := p.GetPod(ctx, "ns", name)
				if err != nil {
					t.Error(err)
					continue
				}
				if other, taken := addresses.LoadOrStore(got.Status.PodIP, name); taken {
					t.Errorf("%s and %s have the address %s", name, other, got.Status.PodIP)
				}
				if i%50 == 0 {
					_, _ = p.GetPods(ctx)
					_, _ = p.GetStatsSummary(ctx)
				}
			}
			for i := range pods / 20 {
				if err := p.DeletePod(ctx, newPod(fmt.Sprintf("pod-%d-%d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	gone.Wait()
	if left, _ := p.GetPods(ctx); len(left) != 0 || len(p.addresses.used) != 0 {
		t.Errorf("%d pods and %d addresses are left, want none", len(left), len(p.addresses.used))
	}
}

// BenchmarkPods creates, reports and deletes pods on a node with 5,000 pods.
func BenchmarkPods(b *testing.B) {
	p := newProvider(b, Config{})
	reports := make(chan *corev1.Pod, 100)
	p.NotifyPods(b.Context(), func(pod *corev1.Pod) { reports <- pod })
	for i := range 5000 {
		create(b, p, newPod(fmt.Sprintf("resident-%d", i)))
		<-reports
	}
	b.ReportAllocs()
	for b.Loop() {
		pod := newPod("guest")
		create(b, p, pod)
		<-reports
		if err := p.DeletePod(b.Context(), pod); err != nil {
			b.Fatal(err)
		}
		<-reports
	}
}
