// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// forks is a command that starts as many processes as it can, and keeps running. It stops at 300, to spare the
// machine if a test fails.
const forks = "sh -c 'n=0; while [ $n -lt 300 ]; do sleep 600 & n=$((n+1)); done'; exec sleep 600"

// TestNoisyPodForksWithoutEnd checks that the pod gets no more processes than its limit, that the limit is
// reported, and that other pods keep running. With gVisor its processes are threads of its sandbox, whose kernel ends
// when the machine refuses a thread. The pod has then ended, and its status has the reason.
func TestNoisyPodForksWithoutEnd(t *testing.T) {
	eachRuntime(t, func(t *testing.T, config process.Config) {
		config.PodPidsLimit = 150
		m := newNoisyNode(t, config, "size=96m,nr_inodes=1000")
		quiet := m.run("quiet", "exec sleep 600", nil)
		stop := m.watch("quiet")
		bomb := m.run("bomb", forks, nil)
		if config.Isolation == process.IsolationGVisor {
			m.awaitPhase("bomb", corev1.PodFailed)
			if said := m.status("bomb").ContainerStatuses[0].State.Terminated.Message; !strings.Contains(said, "as many processes and threads as it may") {
				t.Errorf("the container says %q", said)
			}
		} else {
			m.hears("Warning PidsLimitReached", "150 (podPidsLimit)")
			if n := m.tasks("bomb"); n < 100 || n > 150 {
				t.Errorf("the pod has %d processes and threads", n)
			}
		}
		other := m.run("other", "echo one | cat", nil)
		m.awaitPhase("other", corev1.PodSucceeded)
		stop()
		m.delete(bomb, other, quiet)
		m.nothing()
	})
}

// TestNoisyPodWithMostProcessesIsEvicted checks that the pod with the most processes is evicted when the machine
// has too few left, and that the node reports it.
func TestNoisyPodWithMostProcessesIsEvicted(t *testing.T) {
	eachRuntime(t, func(t *testing.T, config process.Config) {
		m := newNoisyNode(t, config, "size=96m,nr_inodes=1000")
		quiet := m.run("quiet", "exec sleep 600", nil) // the older one
		m.running("quiet")
		noisy := m.run("noisy", strings.ReplaceAll(forks, "300", "100"), nil)
		m.until("its processes", func() bool { return m.tasks("noisy") > 100 })
		m.stop()
		m.config.EvictionHard = map[string]string{"pid.available": "99.99%"} // which is never
		m.start()
		for _, pod := range []*corev1.Pod{quiet, noisy} {
			if err := m.pods.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		m.awaitPhase("noisy", corev1.PodFailed)
		if s := m.status("noisy"); s.Reason != "Evicted" || !strings.HasPrefix(s.Message, "The node was low on resource: pids. Threshold quantity: ") {
			t.Errorf("the pod says %s: %s", s.Reason, s.Message)
		}
		if s := m.status("quiet"); s.Phase != corev1.PodRunning {
			t.Errorf("the other pod is %s: %s", s.Phase, s.Message)
		}
		m.hasCondition(corev1.NodePIDPressure, "KubeletHasInsufficientPID")
		m.hears("Warning EvictionThresholdMet Attempting to reclaim pids")
		m.delete(noisy, quiet)
		m.nothing()
	})
}

// tasks returns the number of processes and threads of the machine that belong to a pod, as counted by the
// kernel.
func (m *noisyNode) tasks(name string) (n int) {
	m.t.Helper()
	summary, err := m.pods.GetStatsSummary(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	for _, p := range summary.Pods {
		if p.PodRef.Name == name && p.ProcessStats != nil {
			n = int(*p.ProcessStats.ProcessCount) //nolint:gosec // it is small
		}
	}
	return n
}
