// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestGetPods checks that a pod runs, and that the node's list on /pods has it and only pods of this node.
func (s *EndToEndTestSuite) TestGetPods(t *testing.T) {
	pod := s.start(t, s.newPod("pods", "one"))
	s.awaitCheck(t, "the node lists the pod on /pods", func(ctx context.Context) error {
		pods, err := s.getPods(ctx, "/pods")
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return isSamePod(&p, pod) }) {
			return fmt.Errorf("pod %s is not among %d pods", pod.Name, len(pods))
		}
		for _, p := range pods {
			if p.Spec.NodeName != s.config.NodeName {
				t.Errorf("/pods lists pod %s/%s of node %q", p.Namespace, p.Name, p.Spec.NodeName)
			}
		}
		return nil
	})
}

// TestGetStatsSummary checks that /stats/summary is about the node and has a
// pod with each of its containers.
func (s *EndToEndTestSuite) TestGetStatsSummary(t *testing.T) {
	pod := s.start(t, s.newPod("stats", "one", "two", "three"))
	s.awaitCheck(t, "/stats/summary has the pod and its containers", func(ctx context.Context) error {
		body, err := s.get(ctx, "/stats/summary")
		if err != nil {
			return err
		}
		var summary statsv1alpha1.Summary
		if err := json.Unmarshal(body, &summary); err != nil {
			return fmt.Errorf("decode /stats/summary: %w", err)
		}
		if summary.Node.NodeName != s.config.NodeName {
			return fmt.Errorf("the summary is about node %q, want %q", summary.Node.NodeName, s.config.NodeName)
		}
		want := statsv1alpha1.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}
		i := slices.IndexFunc(summary.Pods, func(p statsv1alpha1.PodStats) bool { return p.PodRef == want })
		if i < 0 {
			return fmt.Errorf("none of %d pods in the summary is %+v", len(summary.Pods), want)
		}
		var containers []string
		for _, c := range summary.Pods[i].Containers {
			containers = append(containers, c.Name)
		}
		return wantContainers(pod, containers)
	})
}

// TestGetMetricsResource checks that /metrics/resource has the CPU time of a
// pod and of each of its containers.
func (s *EndToEndTestSuite) TestGetMetricsResource(t *testing.T) {
	pod := s.start(t, s.newPod("metrics", "one", "two", "three"))
	s.awaitCheck(t, "/metrics/resource has the pod and its containers", func(ctx context.Context) error {
		body, err := s.get(ctx, "/metrics/resource")
		if err != nil {
			return err
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("parse /metrics/resource: %w", err)
		}
		if got := ofPod(families["pod_cpu_usage_seconds_total"], pod); len(got) != 1 {
			return fmt.Errorf("pod_cpu_usage_seconds_total has %d metrics of pod %s, want 1", len(got), pod.Name)
		}
		var containers []string
		for _, m := range ofPod(families["container_cpu_usage_seconds_total"], pod) {
			containers = append(containers, labelValue(m, "container"))
		}
		return wantContainers(pod, containers)
	})
}

// wantContainers compares names with the containers of pod, in any order.
func wantContainers(pod *corev1.Pod, names []string) error {
	var want []string
	for _, c := range pod.Spec.Containers {
		want = append(want, c.Name)
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(names)); !slices.Equal(got, want) {
		return fmt.Errorf("containers of pod %s: got %q, want %q", pod.Name, got, want)
	}
	return nil
}

// ofPod returns the metrics of a family about pod. A provider may leave the namespace out.
func ofPod(family *dto.MetricFamily, pod *corev1.Pod) (metrics []*dto.Metric) {
	for _, m := range family.GetMetric() {
		namespace := labelValue(m, "namespace")
		if labelValue(m, "pod") == pod.Name && (namespace == "" || namespace == pod.Namespace) {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// labelValue returns the value of the label named what: pod, container or namespace. The kubelet uses exactly these
// names; some other providers use PodName or pod_name.
func labelValue(m *dto.Metric, what string) string {
	for _, l := range m.GetLabel() {
		name := strings.ToLower(strings.ReplaceAll(l.GetName(), "_", ""))
		if name == what || name == what+"name" {
			return l.GetValue()
		}
	}
	return ""
}
