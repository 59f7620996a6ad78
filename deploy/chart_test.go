// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

// settingRow matches a setting in docs/configuration.md, which is generated from the table of flags.
var settingRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| `([A-Za-z]+)` \\|")

// ownFields lists the fields of the configuration that the chart sets from other values.
var ownFields = []string{"kubeconfig", "bootstrapKubeconfig", "certDir", "nodeName", "nodes", "shareNodes", "provider", "providerConfig", "port", "disableKubeletAPI",
	"tlsCertFile", "tlsPrivateKeyFile", "serverTLSBootstrap", "clientCAFile", "selfSignedServingCertificate"}

// configSchema returns the schema of the value config.
func configSchema(t *testing.T) string {
	t.Helper()
	reference, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := cli.Program{Name: "vk"}.Command().PersistentFlags()
	var out strings.Builder
	out.WriteString("{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {")
	for i, row := range settingRow.FindAllStringSubmatch(string(reference), -1) {
		schema := `{"type": ["string", "number"]}`
		switch kind := flags.Lookup(row[1]).Value.Type(); {
		case slices.Contains(ownFields, row[2]):
			schema = `{"not": {}}`
		case kind == "bool":
			schema = `{"type": "boolean"}`
		case kind == "int":
			schema = `{"type": "integer"}`
		case kind == "float32":
			schema = `{"type": "number"}`
		case kind == "duration":
			schema = `{"type": "string", "pattern": "^-?([0-9.]+(ns|us|ms|s|m|h))+$"}`
		case kind == "stringSlice":
			schema = `{"type": ["array", "string"], "items": {"type": "string"}}`
		case kind == "stringToString":
			schema = `{"$ref": "#/definitions/strings"}`
		}
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(&out, "\n        %q: %s", row[2], schema)
	}
	out.WriteString("\n      }}")
	return out.String()
}

// TestSchemaOfConfigIsThatOfTheFlags keeps the schema of the value config current.
func TestSchemaOfConfigIsThatOfTheFlags(t *testing.T) {
	const file = "helm/virtual-kubelet/values.schema.json"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), "\n    \"config\": ")
	_, after, closed := strings.Cut(rest, ",\n    \"image\": ")
	if !found || !closed {
		t.Fatalf("%s has no config before image", file)
	}
	want := before + "\n    \"config\": " + configSchema(t) + ",\n    \"image\": " + after
	if !json.Valid([]byte(want)) {
		t.Fatal("the schema is no JSON")
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(text), want); diff != "" {
		t.Errorf("%s is not that of the flags: run go test . -update\n%s", file, diff)
	}
}

// valueLine matches a value of the first two levels in values.yaml.
var valueLine = regexp.MustCompile(`^(  )?([a-zA-Z]+):( .*)?$`)

// valuesTable returns the README's table of values, generated from values.yaml. A row has a value, its default,
// and the comment above it.
func valuesTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("helm/virtual-kubelet/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := "| Value | Default | Meaning |\n|---|---|---|\n"
	var comment []string
	parent := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if said, is := strings.CutPrefix(strings.TrimSpace(line), "# "); is {
			comment = append(comment, strings.TrimSpace(said))
			continue
		}
		if found := valueLine.FindStringSubmatch(line); found != nil && (found[1] == "" || parent != "affinity") {
			name, value := found[2], strings.TrimSpace(found[3])
			if found[1] == "" {
				parent = name
			} else {
				name = parent + "." + name
			}
			if value != "" {
				value = "`" + value + "`"
			}
			if value != "" || len(comment) > 0 {
				out += fmt.Sprintf("| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(strings.Join(comment, " "), "|", "\\|"))
			}
		}
		comment = nil
	}
	return out
}

// TestValuesOfTheREADMEAreThoseOfTheChart keeps the table of values current.
func TestValuesOfTheREADMEAreThoseOfTheChart(t *testing.T) {
	const file, begin, end = "helm/virtual-kubelet/README.md", "<!-- values: made by `go test . -update` in deploy/ -->\n", "<!-- end of values -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for values", file)
	}
	want := before + begin + valuesTable(t) + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(text), want); diff != "" {
		t.Errorf("%s is not current: run go test . -update\n%s", file, diff)
	}
}

// TestHelmLintIsStrict: a warning is an error.
func TestHelmLintIsStrict(t *testing.T) {
	for name, given := range modes {
		result := lint.RunAll(filepath.Join("helm", "virtual-kubelet"), merged(given, everything), "ns")
		for _, m := range result.Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// sample matches the configuration file in the README of a provider.
var sample = regexp.MustCompile("(?s)\n## Configuration file\n.*?\n```yaml\n(.*?\n)```\n")

// TestConfigurationOfEveryProviderIsRendered: the sample configuration in each provider's README is rendered
// unchanged into a Secret.
func TestConfigurationOfEveryProviderIsRendered(t *testing.T) {
	files, err := filepath.Glob("../providers/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	with := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		provider := filepath.Base(filepath.Dir(file))
		for mode := range modes {
			given := merged(modes[mode], values{"provider": provider})
			found := sample.FindSubmatch(text)
			if found != nil {
				given["providerConfig"] = string(found[1])
			}
			manifests := mustRender(t, "ns", given)
			var pod appsv1.Deployment
			decode(t, manifests, "Deployment", &pod)
			if !strings.Contains(manifests, "provider: "+provider+"\n") {
				t.Errorf("%s, %s: the provider is not chosen", provider, mode)
			}
			if found == nil {
				continue
			}
			with++
			var secret corev1.Secret
			decode(t, manifests, "Secret", &secret)
			if secret.StringData["provider"] != string(found[1]) {
				t.Errorf("%s, %s: the configuration becomes %q", provider, mode, secret.StringData["provider"])
			}
			if sources := pod.Spec.Template.Spec.Volumes[0].Projected.Sources; len(sources) != 2 || sources[1].Secret.Name != secret.Name {
				t.Errorf("%s, %s: the pod has the files of %v", provider, mode, sources)
			}
		}
	}
	if with < 10*len(modes) {
		t.Errorf("%d configurations were rendered, want those of all providers", with)
	}
}

// TestAvailability: the rendered budget, spread, network policy and names are the requested ones, and select the
// pods of the release.
func TestAvailability(t *testing.T) {
	manifests := mustRender(t, "ns", with(values{
		"fullnameOverride": "edge", "nameOverride": "vk", "replicas": 2,
		"podDisruptionBudget":       values{"maxUnavailable": 1},
		"topologySpreadConstraints": []any{values{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}},
		"networkPolicy":             values{"enabled": true, "from": []any{values{"ipBlock": values{"cidr": "10.0.0.0/8"}}}},
	}))
	var pods appsv1.Deployment
	var budget policyv1.PodDisruptionBudget
	var network networkingv1.NetworkPolicy
	decode(t, manifests, "Deployment", &pods)
	decode(t, manifests, "PodDisruptionBudget", &budget)
	decode(t, manifests, "NetworkPolicy", &network)
	labels := map[string]string{"app.kubernetes.io/name": "vk", "app.kubernetes.io/instance": "virtual-kubelet"}
	spread := pods.Spec.Template.Spec.TopologySpreadConstraints
	for what, selected := range map[string]map[string]string{
		"Deployment": pods.Spec.Selector.MatchLabels, "PodDisruptionBudget": budget.Spec.Selector.MatchLabels, "NetworkPolicy": network.Spec.PodSelector.MatchLabels,
		"spread": spread[0].LabelSelector.MatchLabels,
	} {
		if diff := cmp.Diff(labels, selected); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if pods.Name != "edge" || budget.Name != "edge" || budget.Spec.MaxUnavailable.IntValue() != 1 || network.Spec.Ingress[0].From[0].IPBlock.CIDR != "10.0.0.0/8" || network.Spec.Ingress[0].Ports[0].Port.IntValue() != 10250 {
		t.Errorf("got\n%s", manifests)
	}
	if strings.Contains(manifests, "shareNodes") {
		t.Error("replicas of one node stand by, they do not share it")
	}
}

// TestMemoryIsKeptBelowTheLimit: GOMEMLIMIT is nine tenths of the memory limit.
func TestMemoryIsKeptBelowTheLimit(t *testing.T) {
	for limit, want := range map[any]string{"512Mi": "483183820", "1Gi": "966367641", "1000000000": "900000000", "1G": "900000000", "1.5Gi": "", nil: ""} {
		var pods appsv1.Deployment
		decode(t, mustRender(t, "ns", with(values{"resources": values{"limits": values{"memory": limit}}})), "Deployment", &pods)
		got := ""
		for _, v := range pods.Spec.Template.Spec.Containers[0].Env {
			if v.Name == "GOMEMLIMIT" {
				got = v.Value
			}
		}
		if got != want {
			t.Errorf("with the limit %v: got %q, want %q", limit, got, want)
		}
	}
}

// TestNotesNameTheNodes: the notes name the nodes of the release, and no others.
func TestNotesNameTheNodes(t *testing.T) {
	for _, tc := range []struct {
		given      values
		want, none string
	}{
		{modes[nodeIdentity], "kubectl delete node virtual-kubelet\n", "--selector type=virtual-kubelet"},
		{with(values{"nodes": []any{"vk-[0-9]", "gpu"}, "serving": values{"mode": "none"}}), "The nodes vk-[0-9], gpu are on their way", "node virtual-kubelet"},
	} {
		files, err := renderFiles(t, "ns", tc.given)
		if err != nil {
			t.Fatal(err)
		}
		if notes := files["virtual-kubelet/templates/NOTES.txt"]; !strings.Contains(notes, tc.want) || strings.Contains(notes, tc.none) {
			t.Errorf("want %q and not %q in\n%s", tc.want, tc.none, notes)
		}
	}
}

// TestTheTestOfAReleaseHasItsFiles: helm test runs doctor with the files, the account and the image of the node.
func TestTheTestOfAReleaseHasItsFiles(t *testing.T) {
	for mode := range modes {
		given := merged(modes[mode], merged(everything, values{"providerConfig": "a: b\n"}))
		files, err := renderFiles(t, "ns", given)
		if err != nil {
			t.Fatal(err)
		}
		var test corev1.Pod
		var node appsv1.Deployment
		decode(t, files["virtual-kubelet/templates/tests/doctor.yaml"], "Pod", &test)
		decode(t, mustRender(t, "ns", given), "Deployment", &node)
		pod, c := node.Spec.Template.Spec, node.Spec.Template.Spec.Containers[0]
		if diff := cmp.Diff(pod.Volumes, test.Spec.Volumes); diff != "" {
			t.Error(mode, diff)
		}
		if diff := cmp.Diff(c.VolumeMounts, test.Spec.Containers[0].VolumeMounts); diff != "" {
			t.Error(mode, diff)
		}
		if test.Spec.ServiceAccountName != pod.ServiceAccountName || test.Spec.Containers[0].Image != c.Image || test.Annotations["helm.sh/hook"] != "test" {
			t.Errorf("%s: got %v", mode, test)
		}
		for key, value := range node.Spec.Selector.MatchLabels {
			if test.Labels[key] != value {
				return // the Deployment does not count it as one of its pods
			}
		}
		t.Errorf("%s: the Deployment selects the pod of the test", mode)
	}
	if bytes.Contains([]byte(mustRender(t, "ns", modes[nodeIdentity])), []byte("helm.sh/hook")) {
		t.Error("plain manifests have hooks")
	}
}
