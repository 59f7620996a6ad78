// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestBriefStatesAreNotReported: a pod's state before its start is reported only when it lasts, even if it
// changes all the time. The start and the end of the pod are reported at once, and in order.
func TestBriefStatesAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var mu sync.Mutex // guards told
		b := brief{lasts: 2 * time.Second, wake: make(chan struct{}, 1), notify: func(p *corev1.Pod) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, p.Status.Message)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.run(ctx) })
		is := func(phase corev1.PodPhase, message string, want ...string) {
			t.Helper()
			b.report(&corev1.Pod{Status: corev1.PodStatus{Phase: phase, Message: message}})
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, want) {
				t.Errorf("after %s: told %q, want %q", message, told, want)
			}
			told = nil
		}
		is(corev1.PodPending, "one")
		time.Sleep(time.Second)
		is(corev1.PodPending, "two")
		time.Sleep(time.Second)
		synctest.Wait()
		is(corev1.PodRunning, "begun", "two", "begun")
		is(corev1.PodPending, "three")
		is(corev1.PodFailed, "end", "end")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told) > 0 {
			t.Errorf("told %q after the end", told)
		}
		cancel()
		running.Wait()
	})
}
