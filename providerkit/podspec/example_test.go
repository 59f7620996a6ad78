// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// objects stands for cli.ProviderInput, which has the ConfigMaps and Secrets of the node's pods.
type objects struct{}

func (objects) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"app.conf": "debug = true", "other": ""}}, nil
}

func (objects) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{}, nil
}

// The files of a volume, for a backend that accepts files.
func ExampleSources_Files() {
	volume := &corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "app"},
		Items:                []corev1.KeyToPath{{Key: "app.conf", Path: "etc/app.conf"}},
	}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{*volume}}}

	sources := podspec.Sources{Objects: objects{}}
	files, _, err := sources.Files(context.Background(), pod, volume, field.NewPath("spec", "volumes").Index(0))
	for _, f := range files {
		fmt.Println(f.Path, f.Mode, string(f.Data), err)
	}
	fmt.Println("grace period:", podspec.Grace(pod))
	// Output:
	// etc/app.conf -rw-r--r-- debug = true <nil>
	// grace period: 30s
}
