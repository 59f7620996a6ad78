// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// monitored are values with every kind of monitoring.
var monitored = values{
	"identity": values{"mode": "serviceAccount"},
	"serving":  values{"mode": "secret", "secretName": "virtual-kubelet-serving"},
	"monitoring": values{
		"serviceMonitor": values{"enabled": true, "labels": values{"release": "prometheus"}},
		"rules":          values{"enabled": true, "labels": values{"release": "prometheus"}},
		"dashboards":     values{"enabled": true},
	},
}

// TestChartMonitorsNodes: the ServiceMonitor selects the pods, the PrometheusRule has the tested alerts, and
// each dashboard is complete.
func TestChartMonitorsNodes(t *testing.T) {
	manifests, err := render(t, "nodes", monitored)
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, manifests)
	service, monitor, deployment := find(t, all, "Service"), find(t, all, "ServiceMonitor"), find(t, all, "Deployment")
	labels, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "labels")
	selected, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	matched, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	for key, value := range selected {
		if labels[key] != value {
			t.Errorf("the Service selects %s=%s, and the pods have %q", key, value, labels[key])
		}
	}
	for key, value := range matched {
		if service.GetLabels()[key] != value {
			t.Errorf("the ServiceMonitor selects %s=%s, and the Service has %q", key, value, service.GetLabels()[key])
		}
	}
	if !strings.Contains(manifests, "targetLabel: job") || monitor.GetLabels()["release"] != "prometheus" {
		t.Errorf("the alerts would not know the job, or the labels of the ServiceMonitor are wrong: %v", monitor.GetLabels())
	}
	data, err := os.ReadFile("monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want["groups"], find(t, all, "PrometheusRule").Object["spec"].(map[string]any)["groups"]); diff != "" {
		t.Errorf("the PrometheusRule has other alerts: %s", diff)
	}
	dashboards := 0
	for _, o := range all {
		if o.GetKind() != "ConfigMap" || o.GetLabels()["grafana_dashboard"] == "" {
			continue
		}
		texts, _, _ := unstructured.NestedStringMap(o.Object, "data")
		for name, text := range texts {
			dashboards++
			if !json.Valid([]byte(text)) {
				t.Errorf("the dashboard %s is no JSON", name)
			}
		}
	}
	if dashboards != 3 {
		t.Errorf("%d dashboards, want fleet, node and provider", dashboards)
	}
	without := values{"identity": values{"mode": "serviceAccount"}, "serving": values{"mode": "none"}, "monitoring": values{"serviceMonitor": values{"enabled": true}}}
	if _, err := render(t, "nodes", without); err == nil || !strings.Contains(err.Error(), "serving.mode is none") {
		t.Errorf("a ServiceMonitor of a node without kubelet API: got %v", err)
	}
}

var (
	metricInText = regexp.MustCompile(`\b(?:virtual_kubelet|kubelet)_[a-z0-9_]+`)
	alertInRules = regexp.MustCompile(`(?m)^  - alert: (\w+)$`)
)

// TestDashboardsAndAlertsNameMetricsThatExist: the dashboards and alerts name existing metrics only, and
// docs/alerts.md has a section about each alert.
func TestDashboardsAndAlertsNameMetricsThatExist(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	known, runbook, rules := read("../docs/metrics.md"), read("../docs/alerts.md"), read("monitoring/rules.yaml")
	dashboards, err := filepath.Glob("monitoring/*.json")
	if err != nil || len(dashboards) == 0 {
		t.Fatal(dashboards, err)
	}
	for _, path := range append(dashboards, "monitoring/rules.yaml") {
		for _, name := range metricInText.FindAllString(read(path), -1) {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if !strings.Contains(known, "`"+name+"`") {
				t.Errorf("%s: there is no metric %s", path, name)
			}
		}
	}
	alerts := alertInRules.FindAllStringSubmatch(rules, -1)
	for _, a := range alerts {
		if !strings.Contains(runbook, "\n## "+a[1]+"\n") || !strings.Contains(rules, "docs/alerts.md#"+strings.ToLower(a[1])+"\n") {
			t.Errorf("docs/alerts.md says nothing of %s, or the alert has no link to it", a[1])
		}
	}
	if len(alerts) < 10 {
		t.Errorf("%d alerts are found", len(alerts))
	}
}
