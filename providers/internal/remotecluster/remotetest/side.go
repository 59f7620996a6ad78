// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// Side is a home with one node and its remote cluster, in the form that shared provider tests use.
type Side struct {
	*Home
	Worker *Worker
	Line   *Line
	// Cluster is the identity of the node in the remote cluster.
	Cluster remotecluster.Home
	// Namespace returns the remote namespace of a namespace at home.
	Namespace func(home string) string
	// Other is a namespace at home other than default.
	Other string
	// Start runs the provider until stop is called, or the test ends.
	Start func() (p Provider, stop func())
	// Lose removes the remote pod by force, as a third party may.
	Lose func(home *corev1.Pod) error
}

// Stays returns a program that runs until it is asked to stop.
func Stays() program.Program { return program.Program{Stay: program.Forever} }

// WithObjects adds a ConfigMap, a Secret and a token to a pod.
func WithObjects(pod *corev1.Pod) *corev1.Pod {
	objects := corev1.LocalObjectReference{Name: "objects"}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: objects}}},
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
		}}}},
	}
	main := &pod.Spec.Containers[0]
	main.VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}, {Name: "token", MountPath: "/token"}}
	main.Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: objects, Key: "key"}}}}
	return pod
}

// Copies returns the number of ConfigMaps and Secrets of the node in the remote cluster.
func (s Side) Copies() int {
	s.Helper()
	mine := metav1.ListOptions{LabelSelector: s.Cluster.Selector()}
	maps, err := s.Worker.API.Client.CoreV1().ConfigMaps("").List(s.Context(), mine)
	if err != nil {
		s.Fatal(err)
	}
	secrets, err := s.Worker.API.Client.CoreV1().Secrets("").List(s.Context(), mine)
	if err != nil {
		s.Fatal(err)
	}
	return len(maps.Items) + len(secrets.Items)
}

// Refreshed waits for a refresh of the copies that includes every change before the call.
func (s Side) Refreshed(p Provider) {
	s.Helper()
	pod := WithObjects(s.Pod(s.Other, "refreshed", Stays()))
	pod.Spec.Volumes = pod.Spec.Volumes[:1]
	pod.Spec.Containers[0].VolumeMounts, pod.Spec.Containers[0].Env = pod.Spec.Containers[0].VolumeMounts[:1], nil
	s.Put(s.Other, "objects", "one")
	s.Create(p, pod)
	s.Line.Writes()
	s.Put(s.Other, "objects", "two")
	s.Until("a change at home is in the copy", func() (bool, string) {
		m, err := s.Worker.API.Client.CoreV1().ConfigMaps(s.Namespace(s.Other)).Get(s.Context(), s.Cluster.CopyName("ConfigMap", s.Other, "objects"), metav1.GetOptions{})
		return err == nil && m.Data["key"] == "two", fmt.Sprint(m.Data, err)
	})
	if writes := s.Line.Writes(); len(writes) != 1 || !strings.HasPrefix(writes[0], "PUT ") {
		s.Errorf("a change of one ConfigMap made the writes %q, want one", writes)
	}
}
