// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestStatesComeWithTheNextAnswer checks that an end that the plugin knows is reported with the second answer at
// the latest, because one answer may be under way already. An answer is requested every second. The measured
// time is in the report of `make interlink`.
func TestStatesComeWithTheNextAnswer(t *testing.T) {
	needServer(t)
	h := newHome(t)
	h.config.StatusInterval.Duration = 0
	p, _ := h.start()
	direct, err := newClient(Config{URL: "unix://" + h.dir + "/plugin"})
	if err != nil {
		t.Fatal(err)
	}
	const pods = 20
	var all []*corev1.Pod
	for i := range pods {
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), stays())
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		h.Create(p, pod)
		all = append(all, pod)
	}
	for _, pod := range all {
		h.UntilRuns(p, pod)
	}
	var lags []time.Duration
	for _, pod := range all {
		if err := h.cloud.Kill(pod.UID, "main"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the plugin to know of the end", func() bool {
			said, err := direct.statuses(t.Context(), []*corev1.Pod{stub(pod)})
			return err == nil && len(said) == 1 && said[0].Containers[0].State.Terminated != nil
		})
		known, answers := time.Now(), h.line.count("GET /status")
		eventually(t, "the report of the end", func() bool {
			return slices.ContainsFunc(h.ReportsOf(pod.UID), func(r *corev1.Pod) bool { return r.Status.Phase == corev1.PodFailed })
		})
		lags = append(lags, time.Since(known))
		if n := h.line.count("GET /status") - answers; n > 2 {
			t.Errorf("pod %s: reported with answer %d after the plugin knew", pod.Name, n)
		}
	}
	slices.Sort(lags)
	t.Logf("lag: from the end of a container that the plugin knows of to the report of its pod: p50 %d ms, max %d ms of %d",
		lags[pods/2].Milliseconds(), lags[pods-1].Milliseconds(), pods)
}
