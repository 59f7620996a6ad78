// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

var update = flag.Bool("update", false, "write the golden files")

func goldenPod() *corev1.Pod {
	volume := func(name string, s corev1.VolumeSource) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: s}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "physics", Name: "fit", UID: "4f2d0a1c-0000-4000-8000-000000000001", Labels: map[string]string{"app": "fit"},
			Annotations: map[string]string{"slurm-job.vk.io/flags": "--time=10", corev1.LastAppliedConfigAnnotation: "{}"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](5),
			InitContainers: []corev1.Container{{Name: "fetch", Image: "busybox"}},
			Containers:     []corev1.Container{{Name: "main", Image: "busybox", EnvFrom: []corev1.EnvFromSource{{Prefix: "X"}}, VolumeMounts: []corev1.VolumeMount{{Name: "all", MountPath: "/all"}}}},
			Volumes: []corev1.Volume{
				volume("all", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "whole"}}}),
				volume("part", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys", Items: []corev1.KeyToPath{{Key: "one", Path: "1"}}}}),
				volume("absent", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "absent", Optional: ptr.To(true)}}),
				volume("about", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "name"}}}}),
				volume("token", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}),
				volume("scratch", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
			},
		},
	}
}

func goldenInputs() (*service.Inputs, objects) {
	in := &service.Inputs{
		Pod: goldenPod(),
		Containers: map[string]*corev1.Container{
			"fetch": {Name: "fetch", Image: "busybox", Env: []corev1.EnvVar{{Name: "A", Value: "resolved"}}},
			"main": {Name: "main", Image: "busybox", VolumeMounts: []corev1.VolumeMount{{Name: "all", MountPath: "/all"}}, Env: []corev1.EnvVar{
				{Name: "KUBERNETES_SERVICE_HOST", Value: "10.96.0.1"}, {Name: "KUBERNETES_PORT_443_TCP", Value: "tcp://10.96.0.1:443"},
			}},
		},
		Files: map[string][]podspec.File{
			"about": {{Path: "name", Data: []byte("fit"), Mode: 0o644}},
			"token": {{Path: "raw", Data: []byte{0xff}, Mode: 0o444}, {Path: "token", Data: []byte("t"), Mode: 0o400}},
		},
	}
	return in, objects{
		configMaps: map[string]*corev1.ConfigMap{"whole": {
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}}, Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0xff}},
		}},
		secrets: map[string]*corev1.Secret{"keys": {Data: map[string][]byte{"one": []byte("1"), "two": []byte("2")}, Type: corev1.SecretTypeOpaque}},
	}
}

// TestRequest compares the request to the API server with testdata. With -update it writes the files.
func TestRequest(t *testing.T) {
	for name, config := range map[string]Config{
		"plain": {},
		"outside": {
			KubernetesAPI: KubernetesAPI{Address: "api.example.com", Port: "6443"}, NoProjectedVolumes: true, JobScriptURL: "https://scripts.example.com",
		},
	} {
		in, has := goldenInputs()
		golden(t, name+".json", request(in, has, config))
		if diff := cmp.Diff(goldenPod(), in.Pod); diff != "" {
			t.Errorf("the pod was changed: %s", diff)
		}
	}
	golden(t, "stub.json", stub(goldenPod()))
	pod := goldenPod()
	pod.DeletionGracePeriodSeconds = ptr.To[int64](3)
	golden(t, "deletion.json", deletion(pod))
}

func golden(t *testing.T, name string, what any) {
	t.Helper()
	got, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestPartsStayNowhere checks that a pod is not sent if its annotations ask for some of its parts to stay in the
// cluster.
func TestPartsStayNowhere(t *testing.T) {
	for _, key := range []string{"interlink.eu/disable-offload-containers", "interlink.eu/disable-offload-init-containers"} {
		atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) {
			pod.Annotations = map[string]string{key: "main"}
			if err := p.CreatePod(t.Context(), pod); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), key) || len(s.jobs) != 0 {
				t.Errorf("%s: %v, %d jobs", key, err, len(s.jobs))
			}
		})
	}
}
