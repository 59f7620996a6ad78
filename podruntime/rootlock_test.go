// SPDX-License-Identifier: Apache-2.0

//go:build unix

package podruntime

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// TestOneProcessUsesTheDirectory: a second process does nothing while the first one is running, and its Ping returns the reason. After the end of the
// first process, the second one manages its pods.
func TestOneProcessUsesTheDirectory(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		pod := podOf("p", "main")
		w.create(pod)
		w.awaitRunning(pod)
		first, kill := w.runtime, w.kill
		w.start()
		time.Sleep(time.Minute)
		if err := w.runtime.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "another process uses "+w.root) {
			t.Errorf("the second process says %v, want that another uses the directory", err)
		}
		if err := first.Ping(t.Context()); err != nil {
			t.Errorf("the first process says %v", err)
		}
		before := len(w.Changes())
		kill()
		time.Sleep(time.Second)
		synctest.Wait()
		pods, err := w.runtime.GetPods(t.Context())
		if err != nil || len(pods) != 1 || pods[0].UID != pod.UID {
			t.Errorf("the second process has %v (%v), want the pod", pods, err)
		}
		if err := w.runtime.Ping(t.Context()); err != nil {
			t.Errorf("alone, it says %v", err)
		}
		if after := w.Changes(); len(after) != before {
			t.Errorf("it changed something at the runtime: %v", after[before:])
		}
	})
}
