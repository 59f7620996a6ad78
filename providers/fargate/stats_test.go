// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestUsageOfContainerInsights checks the units: 1,024 units of CPU are a core, and memory is in MiB. The event
// has the keys of the vendor's reference: Container-Insights-reference-performance-logs-ECS.
func TestUsageOfContainerInsights(t *testing.T) {
	var u usage
	if err := json.Unmarshal([]byte(`{"Version":"0","Type":"Container","ContainerName":"main","TaskId":"7ac4dfba69214411b4783a3b8189c9ba","ContainerKnownStatus":"RUNNING",
		"Timestamp":1623963900000,"CpuUtilized":256.0,"CpuReserved":10.0,"MemoryUtilized":12,"MemoryReserved":10}`), &u); err != nil {
		t.Fatal(err)
	}
	pod := podOf("web", program.Program{})
	for _, name := range []string{"main", "late"} {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
	s := podStats(pod, last("arn:aws:ecs:eu-central-1:123456789012:task/default/7ac4dfba69214411b4783a3b8189c9ba"), map[string]usage{u.TaskID + "/main": u})
	if len(s.Containers) != 2 || s.Containers[1].CPU != nil || s.CPU == nil || *s.CPU.UsageNanoCores != 250_000_000 || *s.Containers[0].Memory.WorkingSetBytes != 12<<20 || s.CPU.Time.UnixMilli() != 1623963900000 {
		t.Errorf("got %+v", s)
	}
}

// TestStatsNeedContainerInsights checks that the error for a cluster without usage data has a remedy.
func TestStatsNeedContainerInsights(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	pod := podOf("web", program.Program{Stay: program.Forever})
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, p, "web", "running", isRunning)
	if s, err := p.kit.GetStatsSummary(t.Context()); err != nil || len(s.Pods) != 1 || s.Pods[0].CPU == nil {
		t.Errorf("got %+v, %v", s, err)
	}
	defer c.Break(emulator.Fault{Operations: []string{"FilterLogEvents"}, Answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type": "ResourceNotFoundException", "message": "The specified log group does not exist."}`) // a failed write leaves the client without an answer
	}})()
	if _, err := p.kit.GetStatsSummary(t.Context()); err == nil || errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "switch Container Insights on") {
		t.Errorf("without Container Insights: got %v", err)
	}
}
