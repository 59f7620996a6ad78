// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestDarkRemoteClusterCostsNothing counts the requests of a node with pods in an hour without answers of the
// remote cluster.
func TestDarkRemoteClusterCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods, perMinute, tokensPerMinute = 100, 40, 5
		r, tokens := &remote{}, &counted{}
		c := inMemory(t, r, pods, nil)
		c.UsePodTokens(tokens)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.RunInBackground(ctx) }()
		time.Sleep(time.Minute)
		if err := c.Ping(ctx); err == nil || tokens.taken() < pods {
			t.Errorf("Ping before: %v, and not every pod got a token", err) // the remote cluster has no nodes
		}
		r.goDark()
		time.Sleep(time.Minute)
		r.asked()
		tokens.taken()
		for range 60 * 6 { // the interval of the node's pings
			if err := c.Ping(ctx); err == nil {
				t.Error("Ping: nothing is wrong")
			}
			time.Sleep(10 * time.Second)
		}
		asked, issued := len(r.asked()), tokens.taken()
		t.Logf("in an hour %d requests and %d tokens", asked, issued)
		if asked > 60*perMinute || issued > 60*tokensPerMinute {
			t.Errorf("in an hour there were %d requests and %d tokens for %d pods, want at most %d and %d", asked, issued, pods, 60*perMinute, 60*tokensPerMinute)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestNothingBeginsBeforeHomeWasListed checks that a node whose home has a slow API server sends no request to the remote cluster, and
// reports no pod, before the pods of home are listed.
func TestNothingBeginsBeforeHomeWasListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &remote{}
		c := inMemory(t, r, 1, func() bool { return time.Since(began) > time.Minute })
		c.UsePodTokens(&counted{})
		told := atomic.Int32{}
		c.NotifyPods(t.Context(), func(*corev1.Pod) { told.Add(1) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.RunInBackground(ctx) }()
		if _, err := c.GetPods(ctx); err == nil || !strings.Contains(err.Error(), "home cluster were not listed") {
			t.Errorf("GetPods before home was listed: %v", err)
		}
		time.Sleep(25 * time.Second)
		if asked := r.asked(); len(asked) > 0 || told.Load() > 0 {
			t.Errorf("before home was listed the remote cluster was asked %q, and %d pods were told", asked, told.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if list, err := c.GetPods(ctx); err != nil || len(list) != 1 || told.Load() != 1 {
			t.Errorf("afterwards there are %d pods (%v), and %d were told", len(list), err, told.Load())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestClaimIsLookedAtAfterARestore checks that the claim is read again after a restore of the remote cluster, which may have lost it.
func TestClaimIsLookedAtAfterARestore(t *testing.T) {
	r := &remote{}
	c := inMemory(t, r, 0, nil)
	check := func() int {
		t.Helper()
		r.asked()
		if err := c.claim.writeClaim(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		_ = c.claim.checkClaim(t.Context(), true) // the claim of this test's remote cluster belongs to no home
		return len(r.asked())
	}
	c.claim.held = true
	held := check()
	if c.recheckWritten(); check() <= held {
		t.Error("after a restore the claim was not looked at")
	}
}

// TestDeletionOfAKnownPodDoesNotWaitForTheClaim checks that a pod is deleted although the claim of the name is not checked after an
// outage. The UID proves that the pod belongs to this home.
func TestDeletionOfAKnownPodDoesNotWaitForTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		c := inMemory(t, r, 1, nil)
		c.UsePodTokens(&counted{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.RunInBackground(ctx) }()
		time.Sleep(time.Minute)
		c.claim.doubted.Store(true)
		r.goDark()
		r.asked()
		if err := c.DeletePod(ctx, c.homePod("default", "web-0")); err == nil {
			t.Error("DeletePod: the remote cluster does not answer")
		}
		if asked := r.asked(); !slices.ContainsFunc(asked, func(s string) bool { return strings.HasPrefix(s, "DELETE ") && strings.Contains(s, "/pods/") }) {
			t.Errorf("asked %q, and not for the deletion", asked)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
