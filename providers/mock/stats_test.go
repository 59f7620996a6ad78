// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func TestStatsAndMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, Config{})
		pod := newPod("a")
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("64Mi")}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "d"})
		create(t, p, pod, newPod("waits", "start-delay", "1h"))
		time.Sleep(100 * time.Second)

		summary, err := p.GetStatsSummary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(summary.Pods) != 1 || summary.Node.NodeName != "n1" {
			t.Fatalf("got %+v, want the one running pod on n1", summary)
		}
		stats := summary.Pods[0]
		if stats.PodRef.Name != "a" || stats.PodRef.Namespace != "ns" || stats.PodRef.UID != "uid-a" || len(stats.Containers) != 2 {
			t.Errorf("pod: got %+v", stats)
		}
		if got := *stats.CPU.UsageCoreNanoSeconds; got != 51e9 {
			t.Errorf("pod CPU: got %d ns, want 100 s of half a core and of 10 m", got)
		}
		if got := *summary.Node.Memory.WorkingSetBytes; got != 64<<20 {
			t.Errorf("node memory: got %d, want 64 MiB", got)
		}

		families, err := p.GetMetricsResource(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]*dto.MetricFamily{}
		for _, f := range families {
			byName[f.GetName()] = f
		}
		if m := byName["pod_cpu_usage_seconds_total"].GetMetric(); len(m) != 1 || m[0].Label[1].GetValue() != "a" || m[0].Counter.GetValue() != 51 {
			t.Errorf("pod CPU: got %v", m)
		}
		if m := byName["container_memory_working_set_bytes"].GetMetric(); len(m) != 2 || m[1].Label[2].GetValue() != "d" || m[1].Gauge.GetValue() != idleMemory {
			t.Errorf("container memory: got %v", m)
		}
		if m := byName["node_cpu_usage_seconds_total"].GetMetric(); len(m) != 1 || m[0].Counter.GetValue() != 51 {
			t.Errorf("node CPU: got %v", m)
		}
	})
}

func TestPortForward(t *testing.T) {
	p := newProvider(t, Config{})
	create(t, p, newPod("a"))
	if err := p.PortForward(t.Context(), "ns", "a", 81, nil); !errdefs.IsInvalidInput(err) {
		t.Errorf("a port that is not declared: got %v", err)
	}
	client, server := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- p.PortForward(t.Context(), "ns", "a", 80, server) }()
	in := bufio.NewReader(client)
	for range 2 {
		if _, err := io.Copy(client, bytes.NewBufferString("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK || string(body) != "pod ns/a answers on port 80\n" {
			t.Errorf("got %s %q", response.Status, body)
		}
	}
	client.Close()
	if err := <-done; err != nil {
		t.Errorf("end of the stream: got %v", err)
	}
}
