// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestSecretsThatNoPodNeedsAreGoneAfterAMinute uses the pauses of real nodes. Two pods of one Secret go one by
// one, and a third one goes while the node is away.
func TestSecretsThatNoPodNeedsAreGoneAfterAMinute(t *testing.T) {
	t.Parallel()
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "unneeded", "vk-0")
	u.config.refreshEvery = 0 // the default
	u.Put("default", "objects", "one")
	p, stop := u.start()
	first, second := withObjects(u.Pod("default", "first", stays())), withObjects(u.Pod("default", "second", stays()))
	u.Create(p, first)
	u.Create(p, second)
	u.UntilRuns(p, second)
	gone := func(left int) {
		t.Helper()
		since := time.Now()
		u.Until(fmt.Sprintf("%d objects are left", left), func() (bool, string) { n := u.copies(); return n == left, fmt.Sprint(n) })
		if took := time.Since(since); took > time.Minute {
			t.Errorf("what no pod needs was there for %s, want a minute at most", took)
		}
	}
	gone(4) // ConfigMap and Secret, and the files of each pod
	u.Delete(p, first)
	u.UntilGone(p, first)
	gone(3)
	u.Delete(p, second)
	u.UntilGone(p, second)
	gone(0)

	third := withObjects(u.Pod("default", "third", stays()))
	u.Create(p, third)
	u.UntilRuns(p, third)
	stop()
	if err := w.Lose(third); err != nil {
		t.Fatal(err)
	}
	u.start()
	gone(0)
}
