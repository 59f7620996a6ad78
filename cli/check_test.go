// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

func TestCheck(t *testing.T) {
	const pods = `
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: example.test/v1
kind: Unknown
metadata: {name: x}
---
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec: {containers: [{name: main, image: i}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          hostPID: true
          containers: [{name: main, image: i, tty: true}]
`
	program := cli.Program{Providers: []cli.Provider{
		{Name: "all"},
		{Name: "little", Capabilities: func(string) (capability.Declaration, error) { return capability.Only(), nil }},
		{Name: "machines", Capabilities: func(string) (capability.Declaration, error) {
			return capability.Only().Accept(capability.OwnMachine()...), nil
		}, Check: func(string) (func(*corev1.Pod) error, error) {
			return func(pod *corev1.Pod) error {
				if needs := capability.Needs(pod); len(needs) > 0 {
					return fmt.Errorf("the mapping sees %s", needs[0].Path)
				}
				return nil
			}, nil
		}},
		{Name: "broken", Capabilities: func(path string) (capability.Declaration, error) {
			return capability.Declaration{}, errors.New("no configuration " + path)
		}},
		{Name: "maps", Check: func(path string) (func(*corev1.Pod) error, error) {
			if path != "" {
				return nil, errors.New("no configuration " + path)
			}
			return func(pod *corev1.Pod) error {
				if pod.Spec.Subdomain == "" {
					return nil
				}
				owner := metav1.GetControllerOf(pod)
				return fmt.Errorf("%s/%s of %s %s with %s.%s, %s, %v: no", pod.Namespace, pod.Name, owner.Kind, owner.Name, pod.Spec.Hostname, pod.Spec.Subdomain,
					pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, pod.Annotations)
			}, nil
		}},
	}}
	const makers = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: db
  volumeClaimTemplates: [{metadata: {name: data}}]
  template:
    metadata: {annotations: {a: b}}
    spec: {containers: [{name: main, image: i, volumeMounts: [{name: data, mountPath: /d}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec:
  imagePullSecrets: [{name: login}]
  containers: [{name: main, image: i, envFrom: [{configMapRef: {name: m}}], env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]
  volumes: [{name: s, secret: {secretName: s}}, {name: p, projected: {sources: [{configMap: {name: other}}]}}]
`
	const restricted = "apiVersion: v1\nkind: Pod\nmetadata: {name: r}\nspec: {containers: [{name: a, image: i, envFrom: [{configMapRef: {name: m}}], " +
		"securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: %t}}]}\n"
	const list = `
apiVersion: v1
kind: Pod
metadata: {name: fine}
spec: {containers: [{name: a, image: i}]}
---
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- {apiVersion: v1, kind: Pod, metadata: {name: item, managedFields: [{manager: m}]}, spec: {containers: [{name: a, image: i, tty: true}]}, status: {phase: Running}}
- {apiVersion: v1, kind: Service, metadata: {name: web}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: a, image: i, tty: true}]}}}}
`
	const refusedTTY = "this node cannot run the pod: spec.containers[0].tty: the backend has no InteractiveContainers\n"
	const onePod = "{apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {containers: [{name: a, image: i}]}}"
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	folder := filepath.Dir(write("a.yml", onePod))
	for name, text := range map[string]string{"b.json": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"containers": [{"name": "a", "image": "i"}]}}`, "c.txt": "no: object"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const at = "spec.containers[0].securityContext."
	for _, tt := range []struct {
		name     string
		args     []string
		in, want string
		fails    string
	}{
		{"all can run", []string{"--provider=all"}, pods, "Pod plain: can run\nCronJob nightly: can run\n", ""},
		{"one cannot", []string{"--provider=little"}, pods, "Pod plain: can run\nCronJob nightly: this node cannot run the pod: " +
			"spec.containers[0].tty: the backend has no InteractiveContainers; spec.hostPID: the backend has no HostNamespaces\n", "exit code 1"},
		{"a broken configuration", []string{"--provider=broken", "--provider-config=/c"}, pods, "", "provider broken: no configuration /c"},
		{"the mapping refuses", []string{"--provider=maps"}, makers, "StatefulSet db: shop/db-0 of StatefulSet db with db-0.db, data-db-0, map[a:b]: no\n" +
			"Pod plain: can run; not read: ConfigMap m, Secret s, ConfigMap other, Secret login\n", "exit code 1"},
		{"a broken configuration for the mapping", []string{"--provider=maps", "--provider-config=/c"}, pods, "", "provider maps: no configuration /c"},
		{"it runs without", []string{"--provider=machines"}, fmt.Sprintf(restricted, false),
			"Pod r: can run; without " + at + "allowPrivilegeEscalation: the backend has no NoNewPrivileges; not read: ConfigMap m\n", ""},
		{"without is not accepted", []string{"--provider=machines"}, fmt.Sprintf(restricted, true),
			"Pod r: this node cannot run the pod: " + at + "readOnlyRootFilesystem: the backend has no ReadOnlyRoot\n", "exit code 1"},
		{"the operator accepts", []string{"--provider=machines", "--accept-unenforced=ReadOnlyRoot,NoNewPrivileges"}, fmt.Sprintf(restricted, true),
			"Pod r: can run; without " + at + "readOnlyRootFilesystem: the backend has no ReadOnlyRoot; without " + at +
				"allowPrivilegeEscalation: the backend has no NoNewPrivileges; not read: ConfigMap m\n", ""},
		{"a feature that is none", []string{"--provider=machines", "--accept-unenforced=FsGroups"}, pods, "", "did you mean FSGroup?"},
		{"no pods", []string{"--provider=all"}, "apiVersion: v1\nkind: Service\n", "", "has no pod, and nothing that makes pods"},
		{"not an object", []string{"--provider=all"}, "nonsense", "", "read -: "},
		{"a list", []string{"--provider=little"}, list, "Pod fine: can run\nPod item: " + refusedTTY + "Deployment web: " + refusedTTY, "exit code 1"},
		{"a typed list of the API", []string{"--provider=little"}, `{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "bare"}, "spec": {"containers": [{"name": "a", "image": "i", "tty": true}]}}]}`,
			"Pod bare: " + refusedTTY, "exit code 1"},
		{"misspelt fields", []string{"--provider=all"}, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: a, image: i, comand: [sh]}], xyzzy: 1}}}\n",
			`Deployment d: unknown field "spec.template.spec.containers[0].comand"; did you mean command?; unknown field "spec.template.spec.xyzzy"` + "\n", "exit code 1"},
		{"files and a folder", []string{"--provider=all", "-f", write("one.yaml", onePod), "-f", folder}, "", "Pod one: can run\nPod one: can run\nPod one: can run\n", ""},
		{"an empty folder", []string{"--provider=all", "-f", t.TempDir()}, "", "", "has no file whose name ends in .yaml"},
		{"no file", []string{"--provider=all", "-f", "/does/not/exist"}, "", "", "read the pods: open /does/not/exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := program.Command()
			cmd.SetArgs(append([]string{"check"}, tt.args...))
			cmd.SetIn(strings.NewReader(tt.in))
			cmd.SetOut(&out)
			err := cmd.ExecuteContext(t.Context())
			if out.String() != tt.want {
				t.Errorf("it prints %q, want %q", &out, tt.want)
			}
			if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("it ends with %v, want %q", err, tt.fails)
			}
		})
	}
}
