// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// exampleBlock matches a block of YAML in the README of the chart, below a heading.
var exampleBlock = regexp.MustCompile("(?s)\n##+ ([^\n]*)\n|\n```yaml\n(.*?)\n```\n")

// examples returns the values in the README of the chart, by heading.
func examples(t *testing.T) map[string]values {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("helm", "virtual-kubelet", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, heading := map[string]values{}, ""
	for _, found := range exampleBlock.FindAllStringSubmatch(string(text), -1) {
		if found[1] != "" {
			heading = found[1]
			continue
		}
		given := values{}
		if err := yaml.UnmarshalStrict([]byte(found[2]), &given); err != nil {
			t.Fatalf("%s: %v", heading, err)
		}
		all[heading] = given
	}
	return all
}

// TestExamplesOfTheREADMEAreRendered: the README's examples are rendered with each identity of the node. The
// result has the labels and annotations that the webhooks of the clouds need.
func TestExamplesOfTheREADMEAreRendered(t *testing.T) {
	const others = "Volumes, variables and further containers"
	type expected struct {
		annotations, labels map[string]string // of the ServiceAccount and of the pod
		env                 []corev1.EnvVar
		files               []string // folders with the keys of Secrets
		containers          []string
	}
	want := map[string]expected{
		"aci": {
			annotations: map[string]string{"azure.workload.identity/client-id": "0d1b6e2a-0000-4000-8000-000000000001"},
			labels:      map[string]string{"azure.workload.identity/use": "true"},
		},
		"fargate": {
			annotations: map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/virtual-kubelet"},
			env:         []corev1.EnvVar{{Name: "AWS_REGION", Value: "eu-central-1"}},
		},
		"eci": {
			annotations: map[string]string{"pod-identity.alibabacloud.com/role-name": "virtual-kubelet"},
			labels:      map[string]string{"pod-identity.alibabacloud.com/injection": "on"},
		},
		"huaweicci": {files: []string{"/etc/virtual-kubelet/secrets/cci"}},
		others:      {files: []string{"/run/plugin"}, containers: []string{"plugin"}},
	}
	shown := examples(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(shown))); diff != "" {
		t.Fatal(diff)
	}
	for heading, given := range shown {
		for mode := range modes {
			var account corev1.ServiceAccount
			var bare, rendered appsv1.Deployment
			text := mustRender(t, "virtual-kubelet", merged(modes[mode], given))
			decode(t, text, "ServiceAccount", &account)
			decode(t, text, "Deployment", &rendered)
			decode(t, mustRender(t, "virtual-kubelet", modes[mode]), "Deployment", &bare)

			got := expected{annotations: account.Annotations}
			for key, value := range rendered.Spec.Template.Labels {
				if _, known := bare.Spec.Template.Labels[key]; !known {
					got.labels = merge(got.labels, key, value)
				}
			}
			before, after := bare.Spec.Template.Spec.Containers[0], rendered.Spec.Template.Spec.Containers[0]
			got.env = append(got.env, after.Env[len(before.Env):]...)
			for _, mount := range after.VolumeMounts[len(before.VolumeMounts):] {
				got.files = append(got.files, mount.MountPath)
			}
			for _, c := range rendered.Spec.Template.Spec.InitContainers {
				got.containers = append(got.containers, c.Name)
			}
			if diff := cmp.Diff(want[heading], got, cmp.AllowUnexported(expected{})); diff != "" {
				t.Errorf("%s, %s: %s", heading, mode, diff)
			}
			if provider, _ := given["provider"].(string); heading != others && provider != heading {
				t.Errorf("%s: the provider is %q", heading, provider)
			}
		}
	}
}

// merge returns m with one more value. If m is nil, merge makes a map.
func merge(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// TestRestrictedNamespaceAdmitsTheExamples: a restricted namespace admits the pods of the README's examples.
func TestRestrictedNamespaceAdmitsTheExamples(t *testing.T) {
	c := newCluster(t)
	for heading, given := range examples(t) {
		if warnings := c.apply(mustRender(t, c.namespace, merged(modes[bootstrapped], given)), "--dry-run=server"); warnings != "" {
			t.Errorf("%s: the API server warns: %s", heading, warnings)
		}
	}
}
