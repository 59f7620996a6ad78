// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// world is a runtime with pods of the node n1.
type world struct {
	*fakecri.Runtime
	t      *testing.T
	client *fakecri.Client
	boxes  map[string]string
	config map[string]*runtimeapi.PodSandboxConfig
}

func newWorld(t *testing.T, config fakecri.Config) *world {
	t.Helper()
	r := fakecri.New(config)
	r.AddImage(fakecri.Image{Name: "app", Size: 1000})
	return &world{Runtime: r, t: t, client: r.Client(), boxes: map[string]string{}, config: map[string]*runtimeapi.PodSandboxConfig{}}
}

func (w *world) pod(name, node string, network runtimeapi.NamespaceMode) string {
	w.t.Helper()
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "ns", Uid: "uid-" + name}, Labels: map[string]string{"node": node},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Network: network}}},
	}
	id, err := w.client.RunPodSandbox(w.t.Context(), config, "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.boxes[name], w.config[name] = id, config
	return id
}

func (w *world) container(pod, name string, attempt uint32, u fakecri.Usage) string {
	w.t.Helper()
	id, err := w.client.CreateContainer(w.t.Context(), w.boxes[pod], &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt}, Image: &runtimeapi.ImageSpec{Image: "app"},
		Labels: w.config[pod].Labels,
	}, w.config[pod])
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.StartContainer(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
	w.SetUsage(id, u)
	return id
}

func (w *world) stats(t *testing.T, change func(*Config)) *Stats {
	config := Config{Runtime: w.client, Images: w.client, Node: "n1", Labels: map[string]string{"node": "n1"}, Root: t.TempDir(), Proc: linux(t).proc}
	if change != nil {
		change(&config)
	}
	return New(config)
}

func (w *world) summary(s *Stats) *statsv1alpha1.Summary {
	w.t.Helper()
	got, err := s.Summary(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

const pod, machineNetwork = runtimeapi.NamespaceMode_POD, runtimeapi.NamespaceMode_NODE

// TestPodIsTheSumOfItsContainers: an old runtime measures containers only, so the usage of a pod is their sum.
func TestPodIsTheSumOfItsContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, fakecri.Config{NoPodStats: true})
		w.pod("web", "n1", pod)
		w.pod("alien", "n2", pod)
		w.container("alien", "c", 0, fakecri.Usage{CPUNanoSeconds: 99})
		w.container("web", "b", 0, fakecri.Usage{CPUNanoSeconds: 1e9, WorkingSet: 10, DiskBytes: 100})
		first := w.container("web", "a", 0, fakecri.Usage{CPUNanoSeconds: 2e9, WorkingSet: 20, DiskBytes: 200})
		logs := write(t, map[string]string{"a/0.log": "12345", "a/1.log": "12", "b/0.log": ""})
		s := w.stats(t, func(c *Config) {
			c.Logs = func(p statsv1alpha1.PodReference, container string) string {
				if p.UID != "uid-web" {
					return "/none"
				}
				return filepath.Join(logs, container)
			}
			c.Volumes = func(_ context.Context, p statsv1alpha1.PodReference) ([]Volume, error) {
				return []Volume{{Name: "scratch", Bytes: 1000, Inodes: 3, Ephemeral: true}, {Name: "memory", Bytes: 5000}, {Name: "data", Bytes: 7000, Claim: "claim"}}, nil
			}
		})
		got := w.summary(s)
		if len(got.Pods) != 1 || got.Pods[0].PodRef != (statsv1alpha1.PodReference{Name: "web", Namespace: "ns", UID: "uid-web"}) {
			t.Fatalf("pods %v, want web alone", got.Pods)
		}
		p := got.Pods[0]
		if *p.CPU.UsageCoreNanoSeconds != 3e9 || *p.Memory.WorkingSetBytes != 30 || *p.Memory.UsageBytes != 30 || p.Memory.RSSBytes != nil {
			t.Errorf("the pod: %v %v", p.CPU, p.Memory)
		}
		if names := []string{p.Containers[0].Name, p.Containers[1].Name}; !slices.Equal(names, []string{"a", "b"}) || *p.Containers[0].CPU.UsageCoreNanoSeconds != 2e9 {
			t.Errorf("containers %v", p.Containers)
		}
		if used := *p.EphemeralStorage.UsedBytes; used != 100+200+7+1000 {
			t.Errorf("ephemeral storage %d: layers, logs and volumes on disk are 1307", used)
		}
		if *p.Containers[0].Logs.UsedBytes != 7 || *p.Containers[0].Rootfs.UsedBytes != 200 || p.Containers[0].Logs.CapacityBytes == nil {
			t.Errorf("logs %v, layer %v", p.Containers[0].Logs, p.Containers[0].Rootfs)
		}
		if v := p.VolumeStats; len(v) != 3 || *v[2].UsedBytes != 7000 || v[2].PVCRef.Name != "claim" || v[0].PVCRef != nil {
			t.Errorf("volumes %v", v)
		}

		// A restarted container does not reduce the usage of its pod.
		time.Sleep(10 * time.Second)
		w.Exit(first, 1, "")
		w.container("web", "a", 1, fakecri.Usage{CPUNanoSeconds: 5e8})
		p = w.summary(s).Pods[0]
		if *p.CPU.UsageCoreNanoSeconds != 3.5e9 || *p.Containers[0].CPU.UsageCoreNanoSeconds != 5e8 {
			t.Errorf("after a restart: the pod has used %d, want 3.5e9", *p.CPU.UsageCoreNanoSeconds)
		}
		if rate := p.Containers[1].CPU.UsageNanoCores; rate == nil || *rate != 0 {
			t.Errorf("a container that used nothing since: %v", rate)
		}
		if len(s.rates) != 4 || len(s.pods) != 1 { // the machine, the sandbox and two containers
			t.Errorf("remembered are %d readings and %d pods", len(s.rates), len(s.pods))
		}
		if err := w.client.StopPodSandbox(t.Context(), w.boxes["web"]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if left := w.summary(s).Pods; len(left) != 0 || len(s.pods) != 0 || len(s.pids) != 0 || len(s.rates) != 1 {
			t.Errorf("after its end: %v", left)
		}
	})
}

func TestRuntimeKnowsWholePods(t *testing.T) {
	w := newWorld(t, fakecri.Config{})
	w.pod("web", "n1", pod)
	w.container("web", "a", 0, fakecri.Usage{CPUNanoSeconds: 5, WorkingSet: 10})
	p := w.summary(w.stats(t, nil)).Pods[0]
	if *p.Memory.WorkingSetBytes != 10+1<<20 || *p.CPU.UsageCoreNanoSeconds != 5 || p.Network.Name != "eth0" || *p.Network.RxBytes != 1000 || len(p.Network.Interfaces) != 1 {
		t.Errorf("the pod: %v %v %v", p.CPU, p.Memory, p.Network)
	}
}

// TestRuntimeThatCannotMeasureSandboxes: where all pods are in one cgroup, a runtime that measures this cgroup
// would report the usage of all pods for each pod. A runtime that cannot measure sandboxes answers with an error
// of unknown kind. This error does not hide the usage of containers. From a runtime that has measured sandboxes
// before, the same error is a failure.
func TestRuntimeThatCannotMeasureSandboxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, fakecri.Config{})
		w.pod("web", "n1", runtimeapi.NamespaceMode_POD)
		w.container("web", "main", 0, fakecri.Usage{})
		s := w.stats(t, nil)
		ask := func() (pods int, err error) {
			time.Sleep(time.Minute)
			got, err := s.Summary(t.Context())
			if err != nil {
				return 0, err
			}
			return len(got.Pods), nil
		}
		w.Fail("ListPodSandboxStats", 1, status.Error(codes.Unknown, "not supported"))
		if n, err := ask(); n != 1 || err != nil {
			t.Errorf("a runtime that cannot: got %d pods, %v; want 1", n, err)
		}
		w.Fail("ListPodSandboxStats", 1, status.Error(codes.Unavailable, "it starts"))
		if _, err := ask(); err == nil {
			t.Error("a runtime that is not there: got no error")
		}
		if n, err := ask(); n != 1 || err != nil {
			t.Errorf("a runtime that can: got %d pods, %v; want 1", n, err)
		}
		w.Fail("ListPodSandboxStats", 1, status.Error(codes.Unknown, "failed"))
		if _, err := ask(); err == nil {
			t.Error("a runtime that could: got no error")
		}
	})
}

func TestNetworkOfSandboxFromItsProcess(t *testing.T) {
	w := newWorld(t, fakecri.Config{NoPodStats: true})
	id := w.pod("web", "n1", pod)
	w.pod("onhost", "n1", machineNetwork)
	status, err := w.client.PodSandboxStatus(t.Context(), id, true)
	if err != nil {
		t.Fatal(err)
	}
	proc := write(t, map[string]string{fmt.Sprint(pidOf(status)) + "/net/dev": netDev})
	for _, p := range w.summary(w.stats(t, func(c *Config) { c.Proc = proc })).Pods {
		switch {
		case p.PodRef.Name == "onhost" && p.Network != nil:
			t.Errorf("a pod on the network of the machine has %v", p.Network)
		case p.PodRef.Name == "web" && (p.Network == nil || *p.Network.TxBytes != 400):
			t.Errorf("a pod with a network has %v", p.Network)
		}
	}
}

func TestRuntimeIsAskedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, fakecri.Config{})
		w.Delay("ListContainerStats", time.Millisecond)
		s := w.stats(t, nil)
		asked := func() int { return len(w.Calls("ListContainerStats")) }
		for range 5 {
			go func() { _, _ = s.Summary(t.Context()) }()
		}
		time.Sleep(Freshness)
		synctest.Wait()
		if n := asked(); n != 1 {
			t.Errorf("asked %d times for five answers at once", n)
		}
		time.Sleep(time.Millisecond)
		w.summary(s)
		if n := asked(); n != 2 {
			t.Errorf("asked %d times after a second", n)
		}
		w.Hang("ListPodSandbox", 1)
		time.Sleep(Freshness)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Summary(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a runtime that hangs: %v", err)
		}
		w.summary(s) // the next caller gets an answer
	})
}

func TestNodeSummary(t *testing.T) {
	w := newWorld(t, fakecri.Config{})
	n := w.summary(w.stats(t, nil)).Node
	if n.NodeName != "n1" || n.CPU == nil || n.Memory == nil || n.Network == nil || n.Fs == nil || *n.Fs.CapacityBytes == 0 || n.Swap == nil || n.Rlimit == nil {
		t.Errorf("the node: %+v", n)
	}
	if *n.Runtime.ImageFs.UsedBytes != 1000 || n.Runtime.ImageFs.CapacityBytes == nil || n.Runtime.ContainerFs == nil {
		t.Errorf("images: %v", n.Runtime)
	}
}

func text(families []*dto.MetricFamily) []string {
	var lines []string
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue()
			if f.GetType() == dto.MetricType_COUNTER {
				value = m.GetCounter().GetValue()
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %v stamped %t", f.GetName(), strings.Join(labels, ","), value, m.TimestampMs != nil))
		}
	}
	return lines
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, fakecri.Config{NoPodStats: true})
		w.pod("web", "n1", pod)
		w.container("web", "a", 0, fakecri.Usage{CPUNanoSeconds: 15e8, WorkingSet: 10})
		s := w.stats(t, nil)
		got, err := s.Metrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		node := []string{
			"node_cpu_usage_seconds_total{} 1.63 stamped true",
			"node_memory_working_set_bytes{} 512000 stamped true",
			"node_swap_usage_bytes{} 20480 stamped true",
		}
		want := slices.Concat(node, []string{
			"container_start_time_seconds{namespace=ns,pod=web,container=a} 9.466848e+08 stamped false",
			"container_cpu_usage_seconds_total{namespace=ns,pod=web,container=a} 1.5 stamped true",
			"container_memory_working_set_bytes{namespace=ns,pod=web,container=a} 10 stamped true",
			"pod_cpu_usage_seconds_total{namespace=ns,pod=web} 1.5 stamped true",
			"pod_memory_working_set_bytes{namespace=ns,pod=web} 10 stamped true",
			"scrape_error{} 0 stamped false",
			"resource_scrape_error{} 0 stamped false",
		})
		if diff := cmp.Diff(want, text(got)); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		w.Fail("ListPodSandbox", 1, status.Error(codes.Unavailable, "gone"))
		time.Sleep(Freshness)
		got, err = s.Metrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want = slices.Concat(node, []string{"scrape_error{} 1 stamped false", "resource_scrape_error{} 1 stamped false"})
		if diff := cmp.Diff(want, text(got)); diff != "" {
			t.Errorf("metrics without a runtime (-want +got):\n%s", diff)
		}
		if _, err := s.Summary(t.Context()); status.Code(err) != codes.Unavailable {
			t.Errorf("the summary without a runtime: %v", err)
		}
	})
}

func TestVolumesThatCannotBeMeasured(t *testing.T) {
	w := newWorld(t, fakecri.Config{})
	w.pod("web", "n1", pod)
	s := w.stats(t, func(c *Config) {
		c.Volumes = func(context.Context, statsv1alpha1.PodReference) ([]Volume, error) { return nil, os.ErrPermission }
	})
	if p := w.summary(s).Pods[0]; p.EphemeralStorage != nil {
		t.Errorf("a pod whose volumes are not known seems to use %v", p.EphemeralStorage)
	}
}
