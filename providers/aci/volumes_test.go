// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// claimed returns a pod with a volume that claims a PersistentVolume.
func claimed(source corev1.PersistentVolumeSource, readOnly bool) (resolved, *corev1.Volume) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c", ReadOnly: readOnly}},
	}}}}
	return resolved{Inputs: &service.Inputs{Pod: pod, Claimed: map[string]*corev1.PersistentVolume{
		"data": {ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}},
	}}}, &pod.Spec.Volumes[0]
}

// TestClaimsAreShares checks that a PersistentVolume names a share of Azure Files and its secret like the
// driver, which accepts attributes in any case of letters. The forms come from
// kubernetes-sigs/azurefile-csi-driver, deploy/example/pv-azurefile-csi.yaml, and from volumes that the driver
// provisions.
func TestClaimsAreShares(t *testing.T) {
	csi := func(handle string, attributes map[string]string, ref *corev1.SecretReference) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: handle, VolumeAttributes: attributes, NodeStageSecretRef: ref}}
	}
	namespace := "storage"
	for name, c := range map[string]struct {
		source corev1.PersistentVolumeSource
		want   [3]string
	}{
		"static":      {csi("any-unique-id", map[string]string{"shareName": "s"}, &corev1.SecretReference{Name: "azure-secret", Namespace: "default"}), [3]string{"s", "default", "azure-secret"}},
		"provisioned": {csi("rg#account#pvc-1###shop", map[string]string{"secretnamespace": "shop", "storage.kubernetes.io/csiProvisionerIdentity": "x"}, nil), [3]string{"pvc-1", "shop", "azure-storage-account-account-secret"}},
		"by account":  {csi("id", map[string]string{"ShareName": "s", "storageAccount": "a"}, nil), [3]string{"s", "", "azure-storage-account-a-secret"}},
		"azureFile":   {corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{ShareName: "s", SecretName: "k", SecretNamespace: &namespace}}, [3]string{"s", "storage", "k"}},
	} {
		for _, readOnly := range []bool{false, true} {
			r, v := claimed(c.source, readOnly)
			share, err := r.shareOf(v, field.NewPath("spec"))
			if got := [3]string{share.name, share.namespace, share.secret}; err != nil || got != c.want || share.readOnly != readOnly {
				t.Errorf("%s: got %v, read-only %t, %v", name, got, share.readOnly, err)
			}
			r.shares = map[string]*corev1.Secret{"data": {Data: map[string][]byte{accountName: []byte("acc"), accountKey: []byte("a2V5")}}}
			out, err := r.volume(v, field.NewPath("spec"))
			if err != nil || out.AzureFile == nil || *out.AzureFile.ShareName != c.want[0] || *out.AzureFile.StorageAccountName != "acc" || (out.AzureFile.ReadOnly != nil) != readOnly {
				t.Errorf("%s: got %+v, %v", name, out, err)
			}
		}
	}
	for want, source := range map[string]corev1.PersistentVolumeSource{
		"shares of Azure Files": {CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.csi.azure.com"}},
		"protocol nfs":          csi("id", map[string]string{"shareName": "s", "protocol": "nfs", "secretName": "k"}, nil),
		"whole shares":          csi("id", map[string]string{"shareName": "s", "folderName": "f", "secretName": "k"}, nil),
		"want shareName":        csi("id", nil, &corev1.SecretReference{Name: "k"}),
		"nodeStageSecretRef":    csi("id", map[string]string{"shareName": "s"}, nil),
	} {
		r, v := claimed(source, false)
		if _, err := r.volume(v, field.NewPath("spec")); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "PersistentVolume pv") {
			t.Errorf("want a refusal with %q, got %v", want, err)
		}
	}
}
