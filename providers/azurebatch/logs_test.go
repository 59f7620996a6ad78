// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"testing"
)

// TestLogsAfterNodeGone: the log of a container can be read after its machine is gone.
func TestLogsAfterNodeGone(t *testing.T) {
	t.Parallel()
	h := newHome(t, aPool(), 1, nil)
	d, _ := h.start()
	pod := h.shell("talks", "echo one; echo two >&2; sleep 1000")
	h.Create(d.kit, pod)
	h.UntilRuns(d.kit, pod)
	h.Until("its log", func() (bool, string) {
		log := h.Log(d.kit, pod)
		return log == "one\ntwo\n" || log == "two\none\n", log
	})
	if err := h.cloud.LoseNode(taskID(pod.UID), "unusable"); err != nil {
		t.Fatal(err)
	}
	h.untilFailed(d, pod)
	if log := h.Log(d.kit, pod); len(log) != len("one\ntwo\n") {
		t.Errorf("after the end of its machine its log is %q", log)
	}
}
