// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// kubeletSeries are the metrics of a kubelet in the rules and dashboards of prometheus-operator/kube-prometheus, by the path of its
// ServiceMonitor: manifests/kubernetesControlPlane-serviceMonitorKubelet.yaml,
// kubernetesControlPlane-prometheusRule.yaml and grafana-dashboardDefinitions.yaml of 2026-08-10. labels are the labels that the node
// sets itself; Prometheus adds job, instance and metrics_path.
var kubeletSeries = []struct {
	path, name, labels string
	why                string // the reason if no node serves the metric
	program            bool   // the program adds the metric, and package cli tests it
}{
	{path: "/metrics", name: "go_goroutines"},
	{path: "/metrics", name: "process_cpu_seconds_total"},
	{path: "/metrics", name: "process_resident_memory_bytes"},
	{path: "/metrics", name: "rest_client_requests_total", labels: "code", program: true},
	{path: "/metrics", name: "rest_client_request_duration_seconds", labels: "verb", program: true},
	{path: "/metrics", name: "kubelet_node_name", labels: "node"},
	{path: "/metrics", name: "kubelet_running_pods"},
	{path: "/metrics", name: "kubelet_running_containers", labels: "container_state"},
	{path: "/metrics", name: "kubelet_pod_start_duration_seconds"},
	{path: "/metrics", name: "kubelet_pod_worker_duration_seconds", labels: "operation_type"},
	{path: "/metrics", name: "kubelet_pleg_relist_duration_seconds"},
	{path: "/metrics", name: "kubelet_pleg_relist_interval_seconds"},
	{path: "/metrics", name: "kubelet_runtime_operations_total", labels: "operation_type"},
	{path: "/metrics", name: "kubelet_runtime_operations_errors_total", labels: "operation_type"},
	{path: "/metrics", name: "kubelet_runtime_operations_duration_seconds", labels: "operation_type"},
	{path: "/metrics", name: "kubelet_volume_stats_available_bytes", labels: "namespace persistentvolumeclaim"},
	{path: "/metrics", name: "kubelet_volume_stats_capacity_bytes", labels: "namespace persistentvolumeclaim"},
	{path: "/metrics", name: "kubelet_volume_stats_used_bytes", labels: "namespace persistentvolumeclaim"},
	{path: "/metrics", name: "kubelet_volume_stats_inodes", labels: "namespace persistentvolumeclaim"},
	{path: "/metrics", name: "kubelet_volume_stats_inodes_free", labels: "namespace persistentvolumeclaim"},
	{path: "/metrics", name: "kubelet_volume_stats_inodes_used", labels: "namespace persistentvolumeclaim"},
	{path: "/metrics", name: "kubelet_certificate_manager_server_ttl_seconds", program: true},             // for a node that requests its serving certificate
	{path: "/metrics", name: "kubelet_certificate_manager_client_ttl_seconds", program: true},             // for a node that requests its client certificate
	{path: "/metrics", name: "kubelet_certificate_manager_client_expiration_renew_errors", program: true}, // for a node that requests its client certificate
	{path: "/metrics", name: "kubelet_server_expiration_renew_errors", program: true},                     // for a node that requests its serving certificate
	{path: "/metrics", name: "kubelet_cgroup_manager_duration_seconds", why: "the node makes no cgroups: where there are some, they are the provider's"},
	{path: "/metrics", name: "kubelet_evictions", why: "the node evicts no pods; a provider that does tells it by the status of the pod and an event"},
	{path: "/metrics", name: "kubelet_node_config_error", why: "it was about dynamic configuration, which no kubelet has any more"},
	{path: "/metrics", name: "storage_operation_duration_seconds", why: "the node mounts no volumes: the provider and its backend do"},
	{path: "/metrics", name: "storage_operation_errors_total", why: "the node mounts no volumes: the provider and its backend do"},
	{path: "/metrics", name: "volume_manager_total_volumes", why: "the node has no volume manager: what a provider calls volumes is its own"},
	{path: "/metrics", name: "kubernetes_build_info", why: "the program is no release of Kubernetes: its version would raise the alert for components of different versions"},
	{path: "/metrics/cadvisor", name: "container_cpu_usage_seconds_total", labels: "container image namespace pod"},
	{path: "/metrics/cadvisor", name: "container_memory_working_set_bytes", labels: "container image namespace pod"},
	{path: "/metrics/cadvisor", name: "container_memory_rss", labels: "container image namespace pod"},
	{path: "/metrics/cadvisor", name: "container_memory_swap", labels: "container image namespace pod"},
	{path: "/metrics/cadvisor", name: "container_network_receive_bytes_total", labels: "namespace pod"},
	{path: "/metrics/cadvisor", name: "container_network_transmit_bytes_total", labels: "namespace pod"},
	{path: "/metrics/cadvisor", name: "container_memory_cache", why: "the statistics of a node have no page cache"},
	{path: "/metrics/cadvisor", name: "container_cpu_cfs_periods_total", why: "the statistics of a node have no periods of the scheduler"},
	{path: "/metrics/cadvisor", name: "container_cpu_cfs_throttled_periods_total", why: "the statistics of a node have no periods of the scheduler"},
	{path: "/metrics/cadvisor", name: "container_fs_reads_total", why: "the statistics of a node have no reads and writes"},
	{path: "/metrics/cadvisor", name: "container_fs_reads_bytes_total", why: "the statistics of a node have no reads and writes"},
	{path: "/metrics/cadvisor", name: "container_fs_writes_total", why: "the statistics of a node have no reads and writes"},
	{path: "/metrics/cadvisor", name: "container_fs_writes_bytes_total", why: "the statistics of a node have no reads and writes"},
	{path: "/metrics/cadvisor", name: "container_network_receive_packets_total", why: "the statistics of a node count bytes, not packets"},
	{path: "/metrics/cadvisor", name: "container_network_receive_packets_dropped_total", why: "the statistics of a node count bytes, not packets"},
	{path: "/metrics/cadvisor", name: "container_network_transmit_packets_total", why: "the statistics of a node count bytes, not packets"},
	{path: "/metrics/cadvisor", name: "container_network_transmit_packets_dropped_total", why: "the statistics of a node count bytes, not packets"},
	{path: "/metrics/probes", name: "prober_probe_total"},
	{path: "/metrics/slis", name: "kubernetes_healthcheck", labels: "name type"},
	{path: "/metrics/slis", name: "kubernetes_healthchecks_total", labels: "name status type"},
	{path: "/metrics/resource", name: "container_cpu_usage_seconds_total", labels: "container namespace pod"}, // used by metrics-server
}

// measuring is a provider with statistics of its pod.
type measuring struct{ *memory }

func (measuring) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	n := ptr.To[uint64](1)
	fs := statsv1alpha1.FsStats{AvailableBytes: n, CapacityBytes: n, UsedBytes: n, Inodes: n, InodesFree: n, InodesUsed: n}
	return &statsv1alpha1.Summary{Pods: []statsv1alpha1.PodStats{{
		PodRef:  statsv1alpha1.PodReference{Name: "p", Namespace: "ns", UID: "u1"},
		Network: &statsv1alpha1.NetworkStats{InterfaceStats: statsv1alpha1.InterfaceStats{Name: "eth0", RxBytes: n, TxBytes: n}},
		Containers: []statsv1alpha1.ContainerStats{{
			Name: "c", CPU: &statsv1alpha1.CPUStats{UsageCoreNanoSeconds: n}, Swap: &statsv1alpha1.SwapStats{SwapUsageBytes: n},
			Memory: &statsv1alpha1.MemoryStats{WorkingSetBytes: n, RSSBytes: n},
		}},
		VolumeStats: []statsv1alpha1.VolumeStats{{Name: "data", FsStats: fs, PVCRef: &statsv1alpha1.PVCReference{Name: "data", Namespace: "ns"}}},
	}}}, nil
}

func (measuring) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	labels := []*dto.LabelPair{}
	for _, l := range []string{"container", "namespace", "pod"} {
		labels = append(labels, &dto.LabelPair{Name: &l, Value: ptr.To("x")})
	}
	return []*dto.MetricFamily{{
		Name: ptr.To("container_cpu_usage_seconds_total"), Type: dto.MetricType_COUNTER.Enum(),
		Metric: []*dto.Metric{{Label: labels, Counter: &dto.Counter{Value: ptr.To(1.0)}}},
	}}, nil
}

// TestPublishedB4KubePrometheusFindsItsSeries scrapes each kubelet path that kube-prometheus scrapes. The
// answers are valid metrics, and have every series and label that the rules and dashboards of kube-prometheus
// select. The table gives a reason for each missing series.
func TestPublishedB4KubePrometheusFindsItsSeries(t *testing.T) {
	ca := testpki.New(t)
	m, mux := newMemory(), http.NewServeMux()
	r := start(t, func(ProviderConfig) (Provider, node.NodeProvider, error) { return measuring{m}, nil, nil },
		WithTLSConfig(WithKeyPairFromPath(ca.Issue(t, "n1"))), AttachProviderRoutes(mux),
		func(cfg *NodeConfig) error {
			cfg.Handler = WithAuth(NoAuth(), mux)
			return nil
		})
	n, err := r.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := r.client.CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u1"},
		Spec: corev1.PodSpec{
			NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "nginx"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}},
		},
	}
	if _, err := r.client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitEvent(t, changes, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })

	client := clientOf(ca.ClientConfig(t, nil, ""))
	pages := map[string]map[string]*dto.MetricFamily{}
	for _, path := range []string{"/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/slis", "/metrics/resource"} {
		status, body := fetch(t, client, fmt.Sprintf("https://127.0.0.1:%d%s", n.Status.DaemonEndpoints.KubeletEndpoint.Port, path), "")
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(body))
		if status != http.StatusOK || err != nil {
			t.Fatalf("GET %s: got %d and metrics that are read with %v, want 200 and nil", path, status, err)
		}
		pages[path] = families
	}
	for _, s := range kubeletSeries {
		family := pages[s.path][s.name]
		switch {
		case s.program:
		case s.why != "" && family != nil:
			t.Errorf("%s has %s, which is said not to be served: %s", s.path, s.name, s.why)
		case s.why == "" && family == nil:
			t.Errorf("%s lacks %s", s.path, s.name)
		case family != nil:
			for label := range strings.FieldsSeq(s.labels) {
				has := func(m *dto.Metric) bool {
					return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() != "" })
				}
				if !slices.ContainsFunc(family.Metric, has) {
					t.Errorf("%s of %s has no label %s with a value", s.name, s.path, label)
				}
			}
		}
	}
	for _, m := range pages["/metrics"]["kubelet_node_name"].GetMetric() {
		for _, l := range m.Label {
			if l.GetName() == "node" && l.GetValue() != "n1" {
				t.Errorf("kubelet_node_name names node %s, want n1: rules join it for the name of the node", l.GetValue())
			}
		}
	}
}
