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

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
)

// checked has the expected results of the command check for a provider.
type checked struct {
	// none is the reason why the provider has no Check.
	none string
	// refuses are the pods of checkcase that the declaration accepts and the mapping refuses.
	refuses []string
	// config is the configuration for mapped, an object that only the mapping refuses. The error contains words.
	config, mapped, words string
}

// checkRows are the expected results of all providers. If a provider starts to support a refused pod, remove the pod from its row.
var checkRows = map[string]checked{
	"mock":   {none: "it runs nothing, and takes every pod"},
	"plugin": {none: "the mapping is in the plugin, which is another program and need not run"},
	"aci": {
		refuses: []string{"defaultmode", "emptyenv", "liveness", "startup", "workingdir"},
		mapped:  pod(`{containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: "/a:b"}]}], volumes: [{name: v, emptyDir: {}}]}`), words: "no paths with a colon",
	},
	"eci": {
		refuses: []string{"emptyenv"},
		mapped:  "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {serviceName: web, template: {spec: {containers: [{name: a, image: i}]}}}}", words: "spec.subdomain: ",
	},
	"fargate": {
		refuses: []string{"grace300", "liveness-exec"},
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
	"azurebatch": {
		mapped: pod(`{containers: [{name: a, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}`), words: "containers[0].resources: nvidia.com/gpu",
	},
	"huaweicci": {
		refuses: []string{"chart"},
		mapped:  "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {template: {spec: {containers: [{name: a, image: i}]}}}}", words: "no pods of a DaemonSet",
	},
	"stackpath": {
		mapped: pod(`{containers: [{name: a, image: i, ports: [{containerPort: 1, protocol: SCTP}]}]}`), words: "ports[0].protocol: SCTP",
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
	"kip": {
		mapped: "{apiVersion: v1, kind: Pod, metadata: {name: x, annotations: {pod.elotl.co/cloud-route: 10.0.0.0/8}}, spec: {containers: [{name: a, image: i}]}}", words: "changes no routes",
	},
	"zun": {
		refuses: []string{"twojobs"},
		mapped:  pod(`{containers: [{name: a, image: "i@sha256:0000000000000000000000000000000000000000000000000000000000000000"}]}`), words: "containers[0].image: Zun drops the digest",
	},
	"process": {
		mapped: manyMounts(), words: "gVisor starts a container with at most",
	},
}

// pod is a pod of a spec.
func pod(spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: " + spec + "}"
}

// manyMounts returns a pod with more volumes than a gVisor container may have.
func manyMounts() string {
	var volumes, mounts []string
	for i := range 500 {
		volumes = append(volumes, fmt.Sprintf("{name: v%d, emptyDir: {}}", i))
		mounts = append(mounts, fmt.Sprintf("{name: v%d, mountPath: /v%d}", i, i))
	}
	return pod("{containers: [{name: a, image: i, volumeMounts: [" + strings.Join(mounts, ", ") + "]}], volumes: [" + strings.Join(volumes, ", ") + "]}")
}

// TestCheckAsksTheMappingOfEveryProvider: the command check refuses all pods that the mapping on a node would refuse.
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
		var declared capability.Declaration
		if declared, err = p.Capabilities(""); err != nil {
			t.Fatal(err)
		}
		var refused []string
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			pod := cases[name].DeepCopy()
			declared.LeaveOut(pod)
			err := refuse(pod)
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

// withoutSome is in the output of check for a pod that runs without a requested feature.
const withoutSome = "can run without"

// TestRestrictedPodsRunWhereAPodIsAMachine: services whose pods are virtual machines run pods of the restricted Pod Security Standard and pods of
// charts, or the refusal names the field. All other providers refuse missing features until the operator accepts that.
func TestRestrictedPodsRunWhereAPodIsAMachine(t *testing.T) {
	const fsGroup, all = "spec.securityContext.fsGroup: ", "--accept-unenforced=NoNewPrivileges,Seccomp,Capabilities,FSGroup,ReadOnlyRoot,RunAsUser"
	for provider, want := range map[string]struct{ chart, accepted string }{
		"aci":       {chart: fsGroup, accepted: "spec.containers[0].volumeMounts[0].subPath: a group of ACI has no field for it"},
		"eci":       {chart: fsGroup, accepted: withoutSome},
		"fargate":   {chart: fsGroup, accepted: "spec.containers[0].volumeMounts[0].subPath: a task definition has no field for it"},
		"huaweicci": {chart: "subPath: CCI has none of an emptyDir", accepted: "subPath: CCI has none of an emptyDir"},
	} {
		cases := checkcase.All()
		cases["groups"] = cases["restricted"].DeepCopy()
		cases["groups"].Name, cases["groups"].Spec.SecurityContext.SupplementalGroups = "groups", []int64{1}
		objects := documents(t, cases)
		says := check(t, provider, "", objects)
		if got := says["Pod restricted"]; got != withoutSome {
			t.Errorf("provider %s: the restricted pod: %s, want it to run", provider, got)
		}
		if got := says["Pod chart"]; !strings.Contains(got, want.chart) {
			t.Errorf("provider %s: the pod of a chart: %s, want %q", provider, got, want.chart)
		}
		named := check(t, provider, "", objects, all)
		if got := named["Pod chart"]; !strings.Contains(got, want.accepted) || strings.Contains(got, "securityContext") {
			t.Errorf("provider %s, all accepted: the pod of a chart: %s, want %q and nothing of its security", provider, got, want.accepted)
		}
		if provider != "huaweicci" && (!strings.Contains(says["Pod groups"], "spec.securityContext.supplementalGroups: ") || named["Pod groups"] != withoutSome) {
			t.Errorf("provider %s: the pod with groups: %s, and where that is accepted: %s", provider, says["Pod groups"], named["Pod groups"])
		}
		if got := check(t, provider, "", objects, "--accept-unenforced=none")["Pod restricted"]; !strings.HasPrefix(got, "this node cannot run the pod: spec.") {
			t.Errorf("provider %s, nothing accepted: the restricted pod: %s", provider, got)
		}
	}
	restricted := documents(t, map[string]*corev1.Pod{"restricted": checkcase.All()["restricted"]})
	for _, p := range providers() {
		if p.Capabilities == nil {
			continue
		}
		if got := check(t, p.Name, "", restricted, all)["Pod restricted"]; got != "can run" && got != withoutSome {
			t.Errorf("provider %s, all accepted: the restricted pod: %s", p.Name, got)
		}
	}
}

// documents returns pods in YAML.
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

// check returns the output of the command check for each object.
func check(t *testing.T, provider, config, objects string, flags ...string) map[string]string {
	t.Helper()
	args := append([]string{"check", "--provider=" + provider}, flags...)
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
		text, _, without := strings.Cut(text, "; without ")
		says[title], fine = text, fine && text == "can run"
		if without {
			says[title] = withoutSome
		}
	}
	if len(says) == 0 || fine != (failed == nil) {
		t.Fatalf("check with the provider %s ends with %v, and says %s", provider, failed, &out)
	}
	return says
}
