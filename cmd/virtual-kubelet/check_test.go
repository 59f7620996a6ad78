// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
)

// checked is what the command check says with a provider.
type checked struct {
	// none is why the provider has no Check.
	none string
	// refuses are the pods of checkcase that the declaration lets pass and the mapping refuses.
	refuses []string
	// config is the configuration for mapped, an object that the mapping alone refuses, with words.
	config, mapped, words string
}

// checkRows are those of each provider. Whoever lets a provider run a pod that it has refused takes the pod off its row.
var checkRows = map[string]checked{
	"mock":   {none: "it runs nothing, and takes every pod"},
	"plugin": {none: "the mapping is in the plugin, which is another program and need not run"},
	"aci": {
		refuses: []string{"defaultmode", "emptyenv", "liveness", "startup", "workingdir"},
		mapped:  pod(`{containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: "/a:b"}]}], volumes: [{name: v, emptyDir: {}}]}`), words: "no paths with a colon",
	},
	"eci": {
		refuses: []string{"dropall", "emptyenv", "startup"},
		mapped:  "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {serviceName: web, template: {spec: {containers: [{name: a, image: i}]}}}}", words: "spec.subdomain: ",
	},
	"fargate": {
		refuses: []string{"grace300", "liveness", "liveness-exec", "startup", "twojobs"},
		mapped:  pod(`{containers: [{name: a, image: i, securityContext: {capabilities: {add: [NET_ADMIN]}}}]}`), words: "capabilities.add[0]: NET_ADMIN",
	},
	"interlink": {
		mapped: "{apiVersion: v1, kind: Pod, metadata: {name: x, annotations: {interlink.eu/disable-offload-containers: a}}, spec: {containers: [{name: a, image: i}]}}", words: "annotation interlink.eu/",
	},
	"nomad": {
		mapped: pod(`{containers: [{name: a, image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}]}`), words: "env[0].valueFrom: Nomad tells the address",
	},
	"slurm": {
		mapped: "{apiVersion: v1, kind: Pod, metadata: {name: x, annotations: {slurm-job.vk.io/flags: --wrap=id}}, spec: {containers: [{name: a, image: i}]}}", words: "slurm-job.vk.io/flags",
	},
	"huaweicci": {
		mapped: "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {template: {spec: {containers: [{name: a, image: i}]}}}}", words: "no pods of a DaemonSet",
	},
	"tensilekube": {
		mapped: "{apiVersion: v1, kind: Pod, metadata: {name: x, annotations: {clusterSelector: nothing}}, spec: {containers: [{name: a, image: i}]}}", words: "annotation clusterSelector",
	},
	"admiralty": {
		mapped: `{apiVersion: v1, kind: Pod, metadata: {name: x, annotations: {admiralty.virtual-kubelet.io/constraints: '{"nodeSelector": {"a": "b"}}'}}, spec: {containers: [{name: a, image: i}]}}`, words: "pods may not set nodeSelector",
	},
	"liqo": {
		mapped: pod(`{containers: [{name: a, image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.nothing}}}]}]}`), words: `field "metadata.nothing"`,
	},
	"cri": {
		config: "{apiVersion: cri.virtual-kubelet.io/v1alpha1, kind: CRIProviderConfiguration, hostPaths: [/srv]}",
		mapped: pod(`{containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, hostPath: {path: /etc}}]}`), words: "spec.volumes[0].hostPath.path: ",
	},
	"process": {
		mapped: manyMounts(), words: "gVisor starts a container with at most",
	},
}

// pod is a pod of a spec.
func pod(spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: " + spec + "}"
}

// manyMounts is a pod with more volumes than a container of gVisor has.
func manyMounts() string {
	var volumes, mounts []string
	for i := range 500 {
		volumes = append(volumes, fmt.Sprintf("{name: v%d, emptyDir: {}}", i))
		mounts = append(mounts, fmt.Sprintf("{name: v%d, mountPath: /v%d}", i, i))
	}
	return pod("{containers: [{name: a, image: i, volumeMounts: [" + strings.Join(mounts, ", ") + "]}], volumes: [" + strings.Join(volumes, ", ") + "]}")
}

// TestCheckAsksTheMappingOfEveryProvider: what a node would refuse after the admission, the command check refuses without a node.
func TestCheckAsksTheMappingOfEveryProvider(t *testing.T) {
	cases := checkcase.All()
	for _, p := range providers() {
		row, ok := checkRows[p.Name]
		if !ok || (row.none != "") != (p.Check == nil) {
			t.Errorf("provider %s: give it a Check, or a row that says why it has none, and not both", p.Name)
			continue
		}
		says := check(t, p.Name, "", documents(t, cases))
		if got := says["Pod "+checkcase.Plain]; got != "can run" {
			t.Errorf("provider %s: the plain pod: %s", p.Name, got)
		}
		if p.Check == nil {
			continue
		}
		refuse, err := p.Check("")
		if err != nil {
			t.Fatal(err)
		}
		var refused []string
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			err := refuse(cases[name])
			if err == nil {
				continue
			}
			if says := says["Pod "+name]; says == err.Error() {
				refused = append(refused, name)
			} else if !strings.HasPrefix(says, "this node cannot run the pod: ") {
				t.Errorf("provider %s, pod %s: check says %q, and the mapping %q", p.Name, name, says, err)
			}
		}
		if !slices.Equal(refused, row.refuses) {
			t.Errorf("provider %s: its mapping refuses %q, want %q", p.Name, refused, row.refuses)
		}
		mapped, err := yaml.YAMLToJSON([]byte(row.mapped))
		if err != nil {
			t.Fatal(err)
		}
		for title, got := range check(t, p.Name, row.config, string(mapped)) {
			if !strings.Contains(got, row.words) || strings.HasPrefix(got, "this node cannot") {
				t.Errorf("provider %s, %s: check says %q, want the words %q of the mapping", p.Name, title, got, row.words)
			}
		}
	}
}

// documents are pods in YAML.
func documents[T any](t *testing.T, of map[string]T) string {
	t.Helper()
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		text, err := yaml.Marshal(of[name])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\napiVersion: v1\nkind: Pod\n%s", text)
	}
	return out.String()
}

// check returns what the command check says of each object.
func check(t *testing.T, provider, config, objects string) map[string]string {
	t.Helper()
	args := []string{"check", "--provider=" + provider}
	if config != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--provider-config="+path)
	}
	var out bytes.Buffer
	cmd := cli.Program{Providers: providers()}.Command()
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(objects))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	failed := cmd.ExecuteContext(t.Context())
	says, fine := map[string]string{}, true
	for line := range strings.Lines(out.String()) {
		title, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		text, _, _ = strings.Cut(text, "; not read: ")
		says[title], fine = text, fine && text == "can run"
	}
	if len(says) == 0 || fine != (failed == nil) {
		t.Fatalf("check with the provider %s ends with %v, and says %s", provider, failed, &out)
	}
	return says
}
