// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNewestRecordOfAGroup reads a record with the usage of each container, in the form of the vendor's
// documentation: DescribeMultiContainerGroupMetric, of 2025-10-17.
func TestNewestRecordOfAGroup(t *testing.T) {
	var answer metricAnswer
	if err := json.Unmarshal([]byte(`{"RequestId": "r", "MonitorDatas": [{"ContainerGroupId": "eci-1", "Records": [{"Timestamp": "2019-04-08T09:30:00Z",
		"Network": {"Interfaces": [{"RxErrors": 0, "TxBytes": 1381805699, "RxBytes": 505001954, "TxErrors": 0, "Name": "eth0"}]},
		"Memory": {"Rss": 1, "AvailableBytes": 4289445888, "WorkingSet": 11153408, "Cache": 7028736, "UsageBytes": 2},
		"CPU": {"Limit": 2000, "UsageCoreNanoSeconds": 70769883, "UsageNanoCores": 5, "Load": 0},
		"Containers": [{"Name": "a", "CPU": {"UsageNanoCores": 3, "UsageCoreNanoSeconds": 4}, "Memory": {"WorkingSet": 6}}]}]}]}`), &answer); err != nil {
		t.Fatal(err)
	}
	pod := testPod(corev1.PodSpec{})
	for _, name := range []string{"a", "late"} {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "over"})
	pod.Status.StartTime = &metav1.Time{}
	got, err := json.Marshal(podStats(pod, answer.MonitorDatas[0].Records[0]))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"podRef":{"name":"web","namespace":"ns","uid":"u-1"},"startTime":null,"containers":[` +
		`{"name":"a","startTime":null,"cpu":{"time":"2019-04-08T09:30:00Z","usageNanoCores":3,"usageCoreNanoSeconds":4},"memory":{"time":"2019-04-08T09:30:00Z","workingSetBytes":6}},` +
		`{"name":"late","startTime":null}],"cpu":{"time":"2019-04-08T09:30:00Z","usageNanoCores":5,"usageCoreNanoSeconds":70769883},` +
		`"memory":{"time":"2019-04-08T09:30:00Z","availableBytes":4289445888,"usageBytes":2,"workingSetBytes":11153408,"rssBytes":1},` +
		`"network":{"time":"2019-04-08T09:30:00Z","name":"eth0","rxBytes":505001954,"rxErrors":0,"txBytes":1381805699,"txErrors":0,` +
		`"interfaces":[{"name":"eth0","rxBytes":505001954,"rxErrors":0,"txBytes":1381805699,"txErrors":0}]}}`
	if string(got) != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if s := podStats(pod, usage{}); s.CPU != nil || len(s.Containers) != 2 || s.Containers[0].CPU != nil {
		t.Errorf("a group that is not measured yet: got %+v", s)
	}
}
