// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the manifests again")

// values are the values of a release.
type values = map[string]any

const (
	nodeIdentity   = "node-identity"
	serviceAccount = "service-account"
	bootstrapped   = "node-bootstrap"
)

// modes are the ways to install a node. docs/deploy.md names the further objects that they need.
var modes = map[string]values{
	nodeIdentity: {
		"identity": values{"mode": "node", "kubeconfigSecret": "virtual-kubelet-identity"},
		"serving":  values{"mode": "secret", "secretName": "virtual-kubelet-serving"},
	},
	bootstrapped: {
		"identity": values{"mode": "node", "bootstrapSecret": "virtual-kubelet-bootstrap"},
		"serving":  values{"mode": "request"},
	},
	serviceAccount: {
		"identity": values{"mode": "serviceAccount"},
		"serving":  values{"mode": "secret", "secretName": "virtual-kubelet-serving"},
	},
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(filepath.Join("helm", "virtual-kubelet"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// renderFiles returns the files that Helm renders for a release, by name.
func renderFiles(t *testing.T, namespace string, given values) (map[string]string, error) {
	t.Helper()
	c := loadChart(t)
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: "virtual-kubelet", Namespace: namespace, Revision: 1, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// render returns the manifests of a release, as Helm would send them.
func render(t *testing.T, namespace string, given values) (string, error) {
	t.Helper()
	files, err := renderFiles(t, namespace, given)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(strings.ReplaceAll(files[name], "# SPDX-License-Identifier: Apache-2.0\n", ""))
		if path.Ext(name) == ".yaml" && text != "" && !strings.Contains(name, "/tests/") { // Helm applies a test only on demand
			fmt.Fprintf(&out, "---\n%s\n", text)
		}
	}
	return out.String(), nil
}

func mustRender(t *testing.T, namespace string, given values) string {
	t.Helper()
	text, err := render(t, namespace, given)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// objects reads manifests.
func objects(t *testing.T, manifests string) (list []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range strings.Split(manifests, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if o.Object != nil {
			list = append(list, o)
		}
	}
	return list
}

// find returns the only object of a kind.
func find(t *testing.T, list []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(list, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return list[i]
}

// TestManifestsAreThoseOfTheChart keeps the plain manifests current.
func TestManifestsAreThoseOfTheChart(t *testing.T) {
	for name, given := range modes {
		head := "# SPDX-License-Identifier: Apache-2.0\n#\n# Made from the chart by `go test . -update` in deploy/. What it needs is in docs/deploy.md.\n"
		namespace := "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: virtual-kubelet\n  labels:\n    pod-security.kubernetes.io/enforce: restricted\n"
		want := head + namespace + mustRender(t, "virtual-kubelet", given)
		file := filepath.Join("manifests", name+".yaml")
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s is not what the chart makes (%v): run go test . -update", file, err)
		}
	}
}

// TestSettingsAreThoseOfTheProgram reads the configuration file of each mode as the program does.
func TestSettingsAreThoseOfTheProgram(t *testing.T) {
	all := maps.Clone(modes)
	all["shared nodes"] = with(values{"nodes": []any{"vk-[00-99]", "gpu"}, "replicas": 3, "serving": values{"mode": "selfSigned"}})
	for name, given := range all {
		text, _, err := unstructured.NestedString(find(t, objects(t, mustRender(t, "ns", given)), "ConfigMap").Object, "data", "config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := execute(t.Context(), &out, []string{"config", "print", "--config=" + file}); err != nil {
			t.Errorf("%s: %v in\n%s", name, err, text)
		}
		if shares := strings.Contains(out.String(), "shareNodes: virtual-kubelet"); shares != (name == "shared nodes") {
			t.Errorf("%s: nodes are shared: %t:\n%s", name, shares, out.String())
		}
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given values
		want  string
	}{
		{"no choice", values{}, "mode"},
		{"identity is not chosen", values{"serving": values{"mode": "none"}}, "/identity/mode"},
		{"serving is not chosen", values{"identity": values{"mode": "serviceAccount"}}, "/serving/mode"},
		{"no kubeconfig", values{"identity": values{"mode": "node"}, "serving": values{"mode": "none"}}, "/identity"},
		{"both Secrets", with(values{"identity": values{"mode": "node", "kubeconfigSecret": "a", "bootstrapSecret": "b"}}), "/identity"},
		{"no certificate", values{"identity": values{"mode": "serviceAccount"}, "serving": values{"mode": "secret"}}, "/serving/secretName"},
		{"unknown value", with(values{"nodenName": "x"}), "nodenName"},
		{"node name", with(values{"nodeName": "A_b"}), "/nodeName"},
		{"name beside the name", with(values{"config": values{"nodeName": "x"}}), "/config/nodeName"},
		{"privileged port", with(values{"serving": values{"mode": "selfSigned", "port": 443}}), "/serving/port"},
		{"digest", with(values{"image": values{"digest": "latest"}}), "/image/digest"},
		{"strategy", with(values{"strategy": "Whatever"}), "/strategy"},
		{"replicas without a lease", with(values{"replicas": 2, "config": values{"disableLeaseGuard": true}}), "config.disableLeaseGuard: with several replicas"},
		{"unknown setting", with(values{"config": values{"logLevle": "debug"}}), "logLevle"},
		{"setting of another type", with(values{"config": values{"maxStreams": "many"}}), "/config/maxStreams"},
		{"setting of the chart", with(values{"config": values{"clientCAFile": "x"}}), "/config/clientCAFile"},
		{"duration", with(values{"config": values{"drainTimeout": "5"}}), "/config/drainTimeout"},
		{"both budgets", with(values{"podDisruptionBudget": values{"minAvailable": 1, "maxUnavailable": 1}}), "/podDisruptionBudget"},
		{"limit of Go", with(values{"extraEnv": []any{values{"name": "GOMEMLIMIT", "value": "1"}}}), "extraEnv: GOMEMLIMIT goes before a setting"},
		{"nodes with the identity of one", values{"nodes": []any{"a", "b"}, "identity": values{"mode": "node", "kubeconfigSecret": "a"}, "serving": values{"mode": "none"}}, "/identity/mode"},
		{"a certificate of nodes that is asked for", with(values{"nodes": []any{"a", "b"}, "serving": values{"mode": "request"}}), "/serving/mode"},
		{"unknown value of the account", with(values{"serviceAccount": values{"name": "x"}}), "/serviceAccount"},
		{"annotation that is no text", with(values{"serviceAccount": values{"annotations": values{"a": true}}}), "/serviceAccount/annotations/a"},
		{"label that is no text", with(values{"podLabels": values{"azure.workload.identity/use": true}}), "/podLabels/azure.workload.identity~1use"},
		{"label of the chart", with(values{"podLabels": values{"app.kubernetes.io/instance": "x"}}), "podLabels: the chart sets app.kubernetes.io/instance itself: remove it"},
		{"annotation of the chart", with(values{"podAnnotations": values{"checksum/config": "x"}}), "podAnnotations: the chart sets checksum/config itself: remove it"},
		{"name of a Secret", with(values{"providerSecrets": []any{"a/b"}}), "/providerSecrets/0"},
		{"Secret twice", with(values{"providerSecrets": []any{"a", "a"}}), "/providerSecrets"},
		{"unknown field of a variable", with(values{"extraEnv": []any{values{"name": "A", "vlaue": "x"}}}), "vlaue"},
		{"variable that is no text", with(values{"extraEnv": []any{values{"name": "A", "value": 1}}}), "/extraEnv/0/value"},
		{"variable of two sources", with(values{"extraEnv": []any{values{"name": "A", "value": "x", "valueFrom": values{"secretKeyRef": values{"name": "s", "key": "k"}}}}}), "/extraEnv/0"},
		{"variable of no key", with(values{"extraEnv": []any{values{"name": "A", "valueFrom": values{"secretKeyRef": values{"name": "s"}}}}}), "key"},
		{"variable of the chart", with(values{"extraEnv": []any{values{"name": "VKUBELET_POD_IP", "value": "x"}}}), "extraEnv: VKUBELET_POD_IP goes before a setting"},
		{"node name in a variable", with(values{"extraEnv": []any{values{"name": "DEFAULT_NODE_NAME", "value": "x"}}}), "extraEnv: DEFAULT_NODE_NAME goes before a setting"},
		{"variables of two sources", with(values{"envFrom": []any{values{"secretRef": values{"name": "a"}, "configMapRef": values{"name": "a"}}}}), "/envFrom/0"},
		{"volume that restricted pods may not have", with(values{"extraVolumes": []any{values{"name": "a", "hostPath": values{"path": "/"}}}}), "hostPath"},
		{"volume of two kinds", with(values{"extraVolumes": []any{values{"name": "a", "emptyDir": values{}, "secret": values{"secretName": "s"}}}}), "/extraVolumes/0"},
		{"volume of no kind", with(values{"extraVolumes": []any{values{"name": "a"}}}), "/extraVolumes/0"},
		{"volume of the chart", with(values{"extraVolumes": []any{values{"name": "identity", "emptyDir": values{}}}}), "extraVolumes: the chart has a volume identity itself: take another name"},
		{"volume of a Secret of the chart", with(values{"extraVolumes": []any{values{"name": "provider-secret-0", "emptyDir": values{}}}}), "extraVolumes: the chart has a volume provider-secret-0"},
		{"unknown field of a mount", with(values{"extraVolumeMounts": []any{values{"name": "a", "mountPath": "/a", "path": "x"}}}), "/extraVolumeMounts/0"},
		{"mount at a relative path", with(values{"extraVolumeMounts": []any{values{"name": "a", "mountPath": "a"}}}), "/extraVolumeMounts/0/mountPath"},
		{"mount over files of the chart", with(values{"extraVolumeMounts": []any{values{"name": "a", "mountPath": "/etc/virtual-kubelet/"}}}), "/etc/virtual-kubelet/config: take another path"},
		{"mount among files of the chart", with(values{"extraVolumeMounts": []any{values{"name": "a", "mountPath": "/var/lib/virtual-kubelet/x"}}}), "/var/lib/virtual-kubelet: take another path"},
		{"mount over everything", with(values{"extraVolumeMounts": []any{values{"name": "a", "mountPath": "/"}}}), "take another path"},
		{"init container without an image", with(values{"initContainers": []any{values{"name": "a"}}}), "image"},
		{"unknown field of an init container", with(values{"initContainers": []any{values{"name": "a", "image": "i", "volumeDevices": []any{}}}}), "volumeDevices"},
	} {
		if _, err := render(t, "ns", tc.given); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error about %s", tc.name, err, tc.want)
		}
	}
}

// with returns the values of a valid release, with more values added.
func with(more values) values { return merged(modes[serviceAccount], more) }

// merged returns the values of both maps. Values of other replace values of one.
func merged(one, other values) values {
	all := maps.Clone(one)
	maps.Copy(all, other)
	return all
}
