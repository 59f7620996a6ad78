// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

var _ node.PodClaimsUser = (*Provider[int])(nil)

// volumes are the PersistentVolumes of pods, by the names of their volumes.
type volumes map[string]*corev1.PersistentVolume

func (v volumes) PersistentVolume(_ context.Context, _ *corev1.Pod, name string) (*corev1.PersistentVolume, error) {
	if v[name] == nil {
		return nil, errors.New("PVC is not bound")
	}
	return v[name], nil
}

// TestClaimsAreFoundBeforeACreate: the driver gets the PersistentVolume of each claim. An unbound claim makes
// the pod wait, and a block device makes the provider refuse the pod.
func TestClaimsAreFoundBeforeACreate(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	found := volumes{
		"data":  {ObjectMeta: metav1.ObjectMeta{Name: "pv"}},
		"block": {ObjectMeta: metav1.ObjectMeta{Name: "raw"}, Spec: corev1.PersistentVolumeSpec{VolumeMode: &block}},
	}
	for _, c := range []struct {
		volume          string
		asks            bool
		refused, passes bool
	}{{"data", true, false, true}, {"late", true, false, false}, {"block", true, true, false}, {"late", false, false, true}} {
		bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
			p, _ := h.start(nil, func(conf *Config) { conf.Claims = c.asks })
			p.UsePodClaims(found)
			pod := h.pod("web")
			pod.Spec.Volumes = []corev1.Volume{{Name: c.volume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
			in, err := p.Inputs(t.Context(), pod)
			if (err == nil) != c.passes || errdefs.IsInvalidInput(err) != c.refused {
				t.Errorf("volume %s, asked for: %t: got %v", c.volume, c.asks, err)
			}
			if err == nil && in.Claimed[c.volume] != map[bool]*corev1.PersistentVolume{true: found[c.volume]}[c.asks] {
				t.Errorf("volume %s, asked for: %t: got the PersistentVolume %v", c.volume, c.asks, in.Claimed[c.volume])
			}
		})
	}
}

// TestClaimsAreReadOnly: a claim is read-only if the pod or the PersistentVolume is read-only.
func TestClaimsAreReadOnly(t *testing.T) {
	for want, all := range map[bool][]corev1.PersistentVolumeSpec{
		true: {
			{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}},
			{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{ReadOnly: true}}},
			{PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{ReadOnly: true}}},
			{PersistentVolumeSource: corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{ReadOnly: true}}},
		},
		false: {
			{}, {AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany}},
			{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{}}},
		},
	} {
		for _, spec := range all {
			in := Inputs{Claimed: volumes{"data": {Spec: spec}}}
			v := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}
			if got := in.ReadOnly(&v); got != want {
				t.Errorf("%+v: read-only %t, want %t", spec, got, want)
			}
			if v.PersistentVolumeClaim.ReadOnly = true; !in.ReadOnly(&v) {
				t.Errorf("%+v: the pod says read-only, and the volume is not", spec)
			}
		}
	}
}

// TestUnreadClaimsAreDirectories: Unread turns claims into emptyDir volumes, which every service supports.
func TestUnreadClaimsAreDirectories(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
		{Name: "b", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}}}
	in, err := Unread(identity.Owner{}, pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range in.Pod.Spec.Volumes {
		if v.EmptyDir == nil {
			t.Errorf("volume %s is %+v", v.Name, v.VolumeSource)
		}
	}
	if pod.Spec.Volumes[0].PersistentVolumeClaim == nil {
		t.Error("the pod of the caller is changed")
	}
}

// elsewhere has Secrets of two namespaces.
type elsewhere struct{ node.PodObjects }

func (elsewhere) Secret(_ context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}, nil
}

// TestSecretsOfVolumesAreInTheirNamespace: a PersistentVolume may name a Secret outside the pod's namespace.
func TestSecretsOfVolumesAreInTheirNamespace(t *testing.T) {
	in := Inputs{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}, Objects: elsewhere{}}
	for asked, want := range map[string]string{"": "shop", "storage": "storage"} {
		if s, err := in.VolumeSecret(t.Context(), asked, "account"); err != nil || s.Namespace != want || in.Pod.Namespace != "shop" {
			t.Errorf("namespace %q: got %v, %v; the pod is in %s", asked, s, err, in.Pod.Namespace)
		}
	}
}
