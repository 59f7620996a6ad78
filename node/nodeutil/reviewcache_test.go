// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestSecurityA5AnswersAreKeptForTheirTime: the cache keeps the answer about a token for 2 minutes, an allowed
// permission for 5 minutes and a refused permission for 30 seconds.
func TestSecurityA5AnswersAreKeptForTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newReviewsInMemory(t)
		auth := webhook(t, api)
		begin := time.Now()
		want := func(at time.Duration, token string, want int) {
			t.Helper()
			time.Sleep(time.Until(begin.Add(at)))
			if got := statusOf(t, auth, request(http.MethodGet, "/metrics", token)); got != want {
				t.Errorf("%s after %s: got %d, want %d", token, at, got, want)
			}
		}
		want(0, "root", 200)
		want(0, "bob", 403)
		api.set(func() {
			api.allow = func(string, authorizationv1.ResourceAttributes) bool { return true }
		})
		want(29*time.Second, "bob", 403)
		want(31*time.Second, "bob", 200)

		want(119*time.Second, "root", 200) // the identity was cached
		api.setDown()
		want(121*time.Second, "root", 401)
		api.set(func() { api.down = false })
		want(122*time.Second, "root", 200) // the cached permission is used
		if n := len(api.accesses); n != 3 {
			t.Errorf("permissions were asked for %d times, want 3", n)
		}
		want(299*time.Second, "root", 200)
		if n := len(api.accesses); n != 3 {
			t.Errorf("before 5 minutes have passed, permissions were asked for %d times, want 3", n)
		}
		want(301*time.Second, "root", 200)
		if n := len(api.accesses); n != 4 {
			t.Errorf("after 5 minutes, permissions were asked for %d times, want 4", n)
		}
		want(302*time.Second, "carol", 200)
		api.setDown()
		want(303*time.Second, "carol", 200)
		want(304*time.Second, "dave", 401)
	})
}
