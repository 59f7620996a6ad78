// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

// metricsHead begins docs/metrics.md.
const metricsHead = `# Metrics

` + "`/metrics`" + ` of the kubelet API has these, to clients with the permission for nodes/metrics; so has ` + "`--metrics-addr`" + ` on a loopback address. Those named
` + "`kubelet_…`" + ` are what a kubelet calls the same, and the rules and dashboards of kube-prometheus know them. Besides there are those of the Go process (` + "`go_…`, `process_…`" + `) and of
the client of the API server (` + "`rest_client_…`" + `), and of each node, at its kubelet API only: ` + "`kubelet_node_name`, `kubelet_running_containers`, `kubelet_volume_stats_…`" + `.
[alerts.md](alerts.md) says what to do about each alert; rules and dashboards are in [deploy/monitoring](../deploy/monitoring/rules.yaml).

| Metric | Type | Unit | Labels | Meaning | Alert |
|---|---|---|---|---|---|
`

var wordInExpr = regexp.MustCompile(`[a-z][a-z0-9_]+`)

// metricsPage is docs/metrics.md, made from the registry and the alerts.
func metricsPage(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../deploy/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(data, &rules); err != nil {
		t.Fatal(err)
	}
	alerts := map[string][]string{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			for _, word := range wordInExpr.FindAllString(r.Expr, -1) {
				for _, suffix := range []string{"_count", "_bucket", "_sum"} {
					word = strings.TrimSuffix(word, suffix)
				}
				link := fmt.Sprintf("[%s](alerts.md#%s)", r.Alert, strings.ToLower(r.Alert))
				if !slices.Contains(alerts[word], link) {
					alerts[word] = append(alerts[word], link)
				}
			}
		}
	}
	var page strings.Builder
	page.WriteString(metricsHead)
	for _, r := range metrics.Rows() {
		unit := ""
		for _, suffix := range []string{"seconds", "bytes"} {
			if strings.HasSuffix(strings.TrimSuffix(r.Name, "_total"), "_"+suffix) {
				unit = suffix
			}
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n", r.Name, r.Type, unit, strings.Join(r.Labels, ", "), r.Help, strings.Join(alerts[r.Name], ", "))
	}
	return page.String()
}

// TestMetricsAreDescribed keeps docs/metrics.md equal to the registry and the alerts.
func TestMetricsAreDescribed(t *testing.T) {
	const file = "../docs/metrics.md"
	want := metricsPage(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("%s is not current; run: go test ./cli -run TestMetricsAreDescribed -update\n%s", file, diff)
	}
}

// TestMetricsKeepTheConventions checks the naming conventions of Prometheus, except for names that a kubelet has.
func TestMetricsKeepTheConventions(t *testing.T) {
	types := map[string]dto.MetricType{"counter": dto.MetricType_COUNTER, "gauge": dto.MetricType_GAUGE, "histogram": dto.MetricType_HISTOGRAM}
	var families []*dto.MetricFamily
	for _, r := range metrics.Rows() {
		kind := types[r.Type]
		m := &dto.Metric{Counter: &dto.Counter{}, Gauge: &dto.Gauge{}, Histogram: &dto.Histogram{}}
		for _, l := range r.Labels {
			m.Label = append(m.Label, &dto.LabelPair{Name: &l, Value: &l})
		}
		families = append(families, &dto.MetricFamily{Name: &r.Name, Help: &r.Help, Type: &kind, Metric: []*dto.Metric{m}})
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "kubelet_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if len(families) < 30 {
		t.Errorf("%d metrics are looked at, want all", len(families))
	}
}
