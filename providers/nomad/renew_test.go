// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"encoding/base64"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// keysPod is a pod with a Secret and a token in one volume.
func keysPod() *corev1.Pod {
	pod := shellPod("keys", DriverExec, "exit 0")
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		},
	}}}}
	return pod
}

// renew replaces the token of a pod with "later".
func (p *provider) renew(ctx context.Context, pod *corev1.Pod) error {
	_, i, _ := p.Cache().Get(pod.UID)
	return p.d.Renew(ctx, &service.Inputs{Pod: pod, Files: map[string][]podspec.File{"keys": {{Path: "token", Data: []byte("later")}}}}, i)
}

// TestRenewalReplacesTokensOnly checks that a renewal changes only the token in the Variable. The other items,
// which the job refers to, stay the same.
func TestRenewalReplacesTokensOnly(t *testing.T) {
	d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1"), "b": []byte("2")}})
	pod := keysPod()
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	want := d.items()
	if len(want) != 3 {
		t.Fatalf("the Variable has the items %v, want three", want)
	}
	want[itemName("secrets/vk/keys/token")] = base64.StdEncoding.EncodeToString([]byte("later"))
	if err := p.renew(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := d.items(); !maps.Equal(got, want) {
		t.Errorf("after the renewal the items are %v, want %v", got, want)
	}
}

// TestCreateAgainLeavesVariables checks that a second CreatePod keeps the Variable of an existing job, because
// the job refers to its items. Without a job, the Variable is written anew.
func TestCreateAgainLeavesVariables(t *testing.T) {
	for name, there := range map[string]bool{"with the job": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
			pod := keysPod()
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			before := d.items()
			d.set(func() {
				if !there {
					clear(d.jobs)
				}
			})
			p.lose(p.d.store.pods[pod.UID])
			p.UsePodObjects(objects{secret: map[string][]byte{"a": []byte("2"), "aa": []byte("x")}})
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if same := maps.Equal(before, d.items()); same != there {
				t.Errorf("the items are %v, before %v; the job was there: %t", d.items(), before, there)
			}
		})
	}
}

// TestConflictHasNoValues checks that no error contains the Variable that Nomad sends with a conflict.
func TestConflictHasNoValues(t *testing.T) {
	d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte(canary)}})
	pod := keysPod()
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	p.lose(p.d.store.pods[pod.UID])
	d.set(func() { d.fail["GET /v1/job/"] = 500 })
	err := p.CreatePod(t.Context(), pod)
	if err == nil || strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte(canary))) {
		t.Errorf("got %v, want an error without the value", err)
	}
}
