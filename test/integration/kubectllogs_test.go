// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func (u user) logs() {
	lines, end := u.reading("logs", "--follow", "web")
	defer end()
	for i := range 4 { // one a second
		if !lines.Scan() {
			u.t.Fatalf("logs --follow ended after %d lines: %v", i, lines.Err())
		}
		if !strings.Contains(lines.Text(), "web") {
			u.t.Errorf("line %d is %q, want one of pod web", i, lines.Text())
		}
	}
	if got := strings.Count(u.kubectl("logs", "web"), "\n"); got < 4 {
		u.t.Errorf("logs has %d lines, want at least the 4 that logs --follow had", got)
	}
}

func (u user) logOptions() {
	if got := strings.Count(u.kubectl("logs", "--tail=1", "web"), "\n"); got != 1 {
		u.t.Errorf("logs --tail=1 has %d lines", got)
	}
	if got := u.kubectl("logs", "--tail=0", "web"); got != "" {
		u.t.Errorf("logs --tail=0 has %q", got)
	}
	if got := u.kubectl("logs", "--limit-bytes=5", "web"); len(got) != 5 {
		u.t.Errorf("logs --limit-bytes=5 has %d bytes: %q", len(got), got)
	}
	since := time.Now().Add(-2 * time.Second).Truncate(time.Second) // the API takes whole seconds
	for line := range strings.Lines(u.kubectl("logs", "--timestamps", "--since=2s", "web")) {
		stamp, text, _ := strings.Cut(line, " ")
		if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || text == "" || at.Before(since) {
			u.t.Errorf("logs --timestamps --since=2s, asked after %s, has the line %q (%v)", since, line, err)
		}
	}
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if got := u.kubectl("logs", "--since-time="+future, "web"); got != "" {
		u.t.Errorf("logs --since-time=%s has %q", future, got)
	}
	if code, _, stderr := u.fails("logs", "--previous", "web"); code != 1 || !strings.Contains(stderr, "previous") {
		u.t.Errorf("logs --previous of a container without previous run: got exit code %d and %q", code, stderr)
	}
	if code, _, stderr := u.fails("logs", "web", "--container=other"); code != 1 || !strings.Contains(stderr, "other") {
		u.t.Errorf("logs of a container that does not exist: got exit code %d and %q", code, stderr)
	}
}

// logsEnd follows the log of a pod until the pod ends.
func (u user) logsEnd() {
	pod := u.pod("brief")
	pod.Annotations = map[string]string{"mock.virtual-kubelet.io/run-for": "3s"}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	u.create(pod)
	u.awaitPod("brief", "has started", func(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodPending })
	followed := u.kubectl("logs", "--follow", "brief")
	u.awaitPod("brief", "has ended", terminal)
	if later := u.kubectl("logs", "brief"); followed != later || later == "" {
		u.t.Errorf("logs --follow had %q, logs after the end has %q", followed, later)
	}
}
