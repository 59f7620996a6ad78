// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const canary = "canary-8d1f"

// TestNoSecretInTask: values from Secrets and tokens are in the blob of the pod and in its containers, but not in requests to Batch.
func TestNoSecretInTask(t *testing.T) {
	t.Parallel()
	h := newHome(t, aPool(), 1, nil)
	h.Put("default", "s", canary)
	d, _ := h.start()
	pod := h.shell("secretive", `cat /s/*; echo; cat /t/token; echo; sleep 1000`)
	pod.Spec.ServiceAccountName = "app"
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
		{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}}},
	}
	c := &pod.Spec.Containers[0]
	c.Env = []corev1.EnvVar{{Name: "PASSWORD", Value: canary + "-variable"}} // as the node has resolved it
	c.VolumeMounts = []corev1.VolumeMount{{Name: "s", MountPath: "/s"}, {Name: "t", MountPath: "/t"}}
	h.Create(d.kit, pod)
	h.UntilRuns(d.kit, pod)
	h.Until("its log has both", func() (bool, string) {
		log := h.Log(d.kit, pod)
		return strings.Contains(log, canary) && strings.Contains(log, "token-1-of-secretive"), log
	})
	h.Delete(d.kit, pod)
	h.UntilGone(d.kit, pod)
	tasks, blobs := 0, 0
	for _, r := range h.cloud.front.Requests() {
		said := r.URL + string(r.Body)
		secret := strings.Contains(said, canary) || strings.Contains(said, "-of-secretive")
		switch {
		case strings.HasPrefix(r.Operation, "Create"):
			tasks++
			if secret || strings.Contains(said, "sig=") {
				t.Errorf("%s has a secret: %s", r.Operation, said)
			}
		case r.Operation == "PutBlob" && secret && strings.Contains(r.URL, pod.Name) == false:
			blobs++
		case secret && r.Operation != "AppendBlock": // the container itself has printed it
			t.Errorf("%s %s has a secret", r.Operation, r.URL)
		}
	}
	if tasks < 2 || blobs == 0 {
		t.Errorf("%d creates and %d blobs with secrets were seen", tasks, blobs)
	}
}
