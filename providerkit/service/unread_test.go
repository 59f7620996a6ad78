// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// TestInputsWithoutTheAPIHaveWhatThePodNames: the names, keys and paths of these inputs are the pod's own, so
// that a mapping can refuse them.
func TestInputsWithoutTheAPIHaveWhatThePodNames(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Name, pod.UID = "web", "u"
	spec := `
containers:
- name: a
  args: ["--as=$(NAME)"]
  envFrom: [{secretRef: {name: all}}]
  env:
  - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
  - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
volumes:
- {name: whole, configMap: {name: m}}
- {name: items, secret: {secretName: s, items: [{key: k, path: a/b, mode: 0400}]}}
- {name: token, projected: {sources: [{serviceAccountToken: {path: token}}, {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}
`
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	before := pod.DeepCopy()
	in, err := service.Unread(identity.Owner{Cluster: "home", Node: "n"}, pod, "more")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	c := in.Containers["a"]
	got = append(got, c.Args...)
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			e.Value = "?"
		}
		got = append(got, e.Name+"="+e.Value)
	}
	for _, volume := range []string{"whole", "items", "token"} {
		for _, f := range in.Files[volume] {
			got = append(got, volume+"/"+f.Path+":"+f.Mode.String()+"="+string(f.Data))
		}
	}
	want := "--as=web more=unread NAME=web IP=? CPU=1 KEY=unread items/a/b:-r--------=unread token/name:-rw-r--r--=web token/token:-rw-r--r--=unread"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if before.String() != pod.String() {
		t.Error("the pod was changed")
	}

	pod.Spec.Containers[0].Env[0].ValueFrom.FieldRef.FieldPath = "metadata.nothing"
	if _, err := service.Unread(identity.Owner{}, pod); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.containers[0].env[0].valueFrom.fieldRef") {
		t.Errorf("a field that is none: %v", err)
	}
}
