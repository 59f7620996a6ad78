// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReferences(t *testing.T) {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	env := func(name string) ([]corev1.EnvFromSource, []corev1.EnvVar) {
		return []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local(name + "-from")}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local(name + "-from")}},
			}, []corev1.EnvVar{
				{Name: "PLAIN", Value: "1"},
				{Name: "C", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local(name + "-key")}}},
				{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local(name + "-key")}}},
				{Name: "F", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	var init, app corev1.Container
	var debug corev1.EphemeralContainer
	init.EnvFrom, init.Env = env("init")
	app.EnvFrom, app.Env = env("app")
	debug.EnvFrom, debug.Env = env("debug")
	pod.Spec.InitContainers = []corev1.Container{init}
	pod.Spec.Containers = []corev1.Container{app, app}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{debug}
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{local("pull"), local("")}
	for _, source := range []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("volume")}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("projected")}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: local("projected")}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
		}}},
		{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azurefile"}},
		{CephFS: &corev1.CephFSVolumeSource{SecretRef: ref("cephfs")}},
		{Cinder: &corev1.CinderVolumeSource{SecretRef: ref("cinder")}},
		{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ref("csi")}},
		{CSI: &corev1.CSIVolumeSource{}},
		{FlexVolume: &corev1.FlexVolumeSource{SecretRef: ref("flex")}},
		{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: ref("iscsi")}},
		{RBD: &corev1.RBDVolumeSource{SecretRef: ref("rbd")}},
		{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: ref("scaleio")}},
		{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: ref("storageos")}},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: source})
	}
	var want []string
	for _, name := range []string{"init-from", "init-key", "app-from", "app-key", "debug-from", "debug-key", "volume", "projected"} {
		want = append(want, "ConfigMap ns/"+name, "Secret ns/"+name)
	}
	for _, name := range []string{"pull", "azurefile", "cephfs", "cinder", "csi", "flex", "iscsi", "rbd", "scaleio", "storageos"} {
		want = append(want, "Secret ns/"+name)
	}
	var got []string
	for k := range podReferences(pod) {
		got = append(got, k.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}
