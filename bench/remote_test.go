// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestLowerPodsAreThoseOfTheirUpperNames(t *testing.T) {
	tr, now := newTracker(1), time.Now()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName(0) + "-0123456789", Annotations: map[string]string{annotationUpperName: podName(0)}}}
	pod.Status.Phase = corev1.PodRunning
	if tr.recordEvent(watch.Modified, pod, now); !tr.running[0].Equal(now) {
		t.Error("a pod of the lower cluster was not seen")
	}
}

func TestSinceIsOfEachPod(t *testing.T) {
	begin := time.Now()
	got := sortedDelays([]time.Time{begin, begin}, []time.Time{begin.Add(time.Second), begin.Add(-time.Millisecond)})
	if got[0] != -time.Millisecond || got[1] != time.Second {
		t.Errorf("got %v, want -1ms and 1s", got)
	}
}

func TestSecondClusterIsInTheTable(t *testing.T) {
	s, err := chooseScenarios("remote")
	if err != nil {
		t.Fatal(err)
	}
	far := &remote{RunningLagP50Millis: 151, Requests: requests{"create pods": 4000}, Pods: 1000, Rest: requests{"list pods": 2, "get /readyz": 3}}
	r := &report{
		Agents: []string{"ours", "tensilekube"}, Settings: map[string]string{},
		Scenarios: []outcome{{scenario: s[0], Rounds: map[string][]*round{"ours": {{AgentCPUMillis: 2}}, "tensilekube": {{AgentCPUMillis: 4, Remote: far}}}}},
	}
	var out bytes.Buffer
	if err := r.printTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"missed   to Running beyond the lower cluster, median of pods: 151 ms, goal 150 ms", "reached  requests to the lower API server per pod life: 4.00, goal 6.00",
		"missed   lists of the lower cluster at rest: 2, goal 0", "reached  CPU per pod life with a second cluster: 2.00 x ours, goal 2.00 x", "create pods",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
