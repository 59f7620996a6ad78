// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// DebugHandler serves the page about the pods of the node, /debug/pods, without authentication: use it on a
// loopback address only. The server of the node has the same page.
func (n *Node) DebugHandler() http.Handler { return api.DebugHandler(n.debugPage) }

// DebugHandler serves the page about the pods of all nodes, as Node.DebugHandler does.
func (f *Fleet) DebugHandler() http.Handler { return api.DebugHandler(f.debugPage) }

func (n *Node) debugPage(ctx context.Context) api.DebugPage { return n.base.debugPage(ctx, n) }

func (f *Fleet) debugPage(ctx context.Context) api.DebugPage {
	return f.base.debugPage(ctx, f.running.Load().nodes...)
}

func (b *base) debugPage(ctx context.Context, nodes ...*Node) api.DebugPage {
	page := api.DebugPage{
		Version: b.common.NodeSpec.Status.NodeInfo.KubeletVersion, At: time.Now(), Nodes: []api.DebugNode{},
		Streams: b.streams.Open(), Counts: debugCounts(),
	}
	for _, n := range nodes {
		page.Nodes = append(page.Nodes, n.debugNode(ctx))
	}
	return page
}

func (n *Node) debugNode(ctx context.Context) api.DebugNode {
	d := api.DebugNode{Name: n.name, Provider: "unknown", Queues: n.pods.Queues(), Pods: []api.DebugPod{}}
	d.Holder, _ = n.node.StandsBy()
	if health, known := n.node.ProviderHealth(); known {
		d.Healthy, d.Since = health.Message == "", health.Since
		d.Provider = cmp.Or(health.Message, "healthy")
	}
	for _, w := range n.pods.Work(ctx) {
		d.Pods = append(d.Pods, api.DebugPod{
			Namespace: w.Namespace, Name: w.Name, UID: string(w.UID), Phase: string(w.Phase),
			WaitsFor: w.WaitsFor, Since: w.Since, Error: w.Error, Tries: w.Tries, NextTry: w.NextTry,
		})
	}
	slices.SortFunc(d.Pods, func(a, b api.DebugPod) int { // pods with errors first, then waiting pods
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)), a.Since.Compare(b.Since),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return d
}

func rank(p api.DebugPod) int {
	switch {
	case p.Error != "":
		return 0
	case p.WaitsFor != "":
		return 1
	}
	return 2
}

// countsOnPage are the counters on the page, with their titles.
var countsOnPage = map[string]string{
	"virtual_kubelet_pod_sync_errors_total":          "Sync errors",
	"virtual_kubelet_provider_call_duration_seconds": "Provider calls",
	"virtual_kubelet_provider_calls_overdue_total":   "Provider calls that did not return in time",
	"virtual_kubelet_provider_ping_failures_total":   "Failed Pings",
	"virtual_kubelet_streams_refused_total":          "Refused streams",
	"rest_client_requests_total":                     "Requests to the API server",
}

func debugCounts() []api.DebugCount {
	counts := []api.DebugCount{}
	families, _ := prometheus.Gatherers{metrics.Registry, metrics.Process}.Gather() // partial results are better than none
	for _, f := range families {
		title := countsOnPage[f.GetName()]
		if title == "" {
			continue
		}
		for _, m := range f.Metric {
			if n := countOf(m); n > 0 {
				counts = append(counts, api.DebugCount{Name: title, Labels: labelsOf(m), Value: n})
			}
		}
	}
	slices.SortStableFunc(counts, func(a, b api.DebugCount) int { return cmp.Compare(a.Name, b.Name) })
	return counts
}

func countOf(m *dto.Metric) float64 {
	if h := m.Histogram; h != nil {
		return float64(h.GetSampleCount())
	}
	return m.Counter.GetValue()
}

func labelsOf(m *dto.Metric) string {
	var values []string
	for _, l := range m.Label {
		if l.GetValue() != "" && l.GetName() != "host" {
			values = append(values, l.GetValue())
		}
	}
	return strings.Join(values, " ")
}
