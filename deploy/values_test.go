// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// decode decodes the only object of a kind into out. Unknown and duplicate fields are errors.
func decode(t *testing.T, manifests, kind string, out any) {
	t.Helper()
	text, err := yaml.Marshal(find(t, objects(t, manifests), kind))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		t.Fatalf("%s: %v in\n%s", kind, err, text)
	}
}

// everything sets each value that adds something to the manifests.
var everything = values{
	"serviceAccount":  values{"annotations": values{"cloud.example/role": "node"}},
	"podLabels":       values{"cloud.example/identity": "on"},
	"podAnnotations":  values{"cloud.example/expires": "3600"},
	"providerSecrets": []any{"keys", "more.keys"},
	"extraEnv": []any{
		values{"name": "REGION", "value": "here"},
		values{"name": "KEY", "valueFrom": values{"secretKeyRef": values{"name": "keys", "key": "id"}}},
	},
	"envFrom":           []any{values{"secretRef": values{"name": "keys"}, "prefix": "CLOUD_"}, values{"configMapRef": values{"name": "region", "optional": true}}},
	"extraVolumes":      []any{values{"name": "run", "emptyDir": values{}}},
	"extraVolumeMounts": []any{values{"name": "run", "mountPath": "/run/plugin"}},
	"initContainers": []any{
		values{"name": "plugin", "image": "plugin:1", "restartPolicy": "Always", "volumeMounts": []any{values{"name": "run", "mountPath": "/run/plugin"}}},
		values{"name": "own", "image": "own:1", "securityContext": values{"readOnlyRootFilesystem": false}},
	},
}

// TestValuesReachThePod: the values are added to the ServiceAccount and the pod, and change nothing else there.
func TestValuesReachThePod(t *testing.T) {
	for name := range modes {
		var account corev1.ServiceAccount
		var before, after appsv1.Deployment
		decode(t, mustRender(t, "ns", modes[name]), "Deployment", &before)
		text := mustRender(t, "ns", merged(modes[name], everything))
		decode(t, text, "ServiceAccount", &account)
		decode(t, text, "Deployment", &after)

		if diff := cmp.Diff(map[string]string{"cloud.example/role": "node"}, account.Annotations); diff != "" {
			t.Error(name, diff)
		}
		want := before.DeepCopy()
		pod, c := &want.Spec.Template, &want.Spec.Template.Spec.Containers[0]
		pod.Labels["cloud.example/identity"], pod.Annotations["cloud.example/expires"] = "on", "3600"
		c.Env = append(c.Env, corev1.EnvVar{Name: "REGION", Value: "here"}, corev1.EnvVar{Name: "KEY", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "id"}}})
		c.EnvFrom = []corev1.EnvFromSource{
			{Prefix: "CLOUD_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "region"}, Optional: new(true)}},
		}
		run := corev1.VolumeMount{Name: "run", MountPath: "/run/plugin"}
		c.VolumeMounts = append(c.VolumeMounts,
			corev1.VolumeMount{Name: "provider-secret-0", MountPath: "/etc/virtual-kubelet/secrets/keys", ReadOnly: true},
			corev1.VolumeMount{Name: "provider-secret-1", MountPath: "/etc/virtual-kubelet/secrets/more.keys", ReadOnly: true}, run)
		secret := func(volume, name string) corev1.Volume {
			return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: new(int32(0o440))}}}
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, secret("provider-secret-0", "keys"), secret("provider-secret-1", "more.keys"),
			corev1.Volume{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "plugin", Image: "plugin:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), VolumeMounts: []corev1.VolumeMount{run}, SecurityContext: c.SecurityContext},
			{Name: "own", Image: "own:1", SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)}},
		}
		if diff := cmp.Diff(want, &after); diff != "" {
			t.Error(name, diff)
		}
	}
}

// TestRestrictedNamespaceAdmitsExtraContainersAndVolumes: containers and volumes from values meet the restricted
// standard, and the API server accepts each of their fields.
func TestRestrictedNamespaceAdmitsExtraContainersAndVolumes(t *testing.T) {
	c := newCluster(t)
	all := merged(modes[nodeIdentity], everything)
	all["initContainers"] = everything["initContainers"].([]any)[:1] // the other one has its own security context
	for _, kind := range []values{
		{"configMap": values{"name": "a"}}, {"csi": values{"driver": "secrets-store.csi.k8s.io", "readOnly": true}}, {"emptyDir": values{"medium": "Memory"}},
		{"downwardAPI": values{"items": []any{values{"path": "labels", "fieldRef": values{"fieldPath": "metadata.labels"}}}}},
		{"ephemeral": values{"volumeClaimTemplate": values{"spec": values{"accessModes": []any{"ReadWriteOnce"}, "resources": values{"requests": values{"storage": "1Gi"}}}}}},
		{"persistentVolumeClaim": values{"claimName": "a"}}, {"secret": values{"secretName": "a"}},
		{"projected": values{"sources": []any{values{"serviceAccountToken": values{"path": "token", "audience": "cloud"}}}}},
	} {
		kind["name"] = "run"
		all["extraVolumes"] = []any{kind}
		if warnings := c.apply(mustRender(t, c.namespace, all), "--dry-run=server"); warnings != "" {
			t.Errorf("%v: the API server warns: %s", kind, warnings)
		}
	}
}
