// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/base64"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// Keys of the secret of an Azure Files share.
const accountName, accountKey = "azurestorageaccountname", "azurestorageaccountkey"

// volume maps a volume.
func (r resolved) volume(v *corev1.Volume, at *field.Path) (*aci.Volume, error) {
	out := &aci.Volume{Name: &v.Name}
	switch {
	case podspec.Written(v):
		if err := modes(v, at); err != nil {
			return nil, err
		}
		out.Secret = map[string]*string{}
		for _, f := range r.files[v.Name] {
			if strings.Contains(f.Path, "/") {
				return nil, errdefs.InvalidInputf("%s: file %s: a volume of ACI has files and no directories", at, f.Path)
			}
			out.Secret[f.Path] = new(base64.StdEncoding.EncodeToString(f.Data))
		}
		if len(out.Secret) == 0 { // ACI wants a file: of optional objects that are not there, there is none
			out.Secret, out.EmptyDir = nil, map[string]any{}
		}
	case v.EmptyDir != nil:
		if v.EmptyDir.SizeLimit != nil && !v.EmptyDir.SizeLimit.IsZero() {
			return nil, errdefs.InvalidInputf("%s: a volume of ACI has no limit", at.Child("emptyDir", "sizeLimit"))
		}
		out.EmptyDir = map[string]any{}
	case v.AzureFile != nil:
		s := r.shares[v.Name]
		if s == nil || len(s.Data[accountName]) == 0 || len(s.Data[accountKey]) == 0 {
			return nil, errdefs.InvalidInputf("%s: the secret %s has no %s or no %s", at.Child("azureFile", "secretName"), v.AzureFile.SecretName, accountName, accountKey)
		}
		out.AzureFile = &aci.AzureFileVolume{
			ShareName: &v.AzureFile.ShareName, StorageAccountName: new(string(s.Data[accountName])), StorageAccountKey: new(string(s.Data[accountKey])),
		}
		if v.AzureFile.ReadOnly {
			out.AzureFile.ReadOnly = new(true)
		}
	default:
		return nil, errdefs.InvalidInputf("%s: volume %q: a group of ACI has files, directories that are empty, and shares of Azure Files", at, v.Name)
	}
	return out, nil
}

// modes refuses modes that a program may rely on: ACI has no field for them. That of the default says nothing.
func modes(v *corev1.Volume, at *field.Path) error {
	var mode *int32
	kind := ""
	items := map[string]*int32{}
	add := func(from []corev1.KeyToPath) {
		for _, i := range from {
			items[i.Path] = i.Mode
		}
	}
	down := func(from []corev1.DownwardAPIVolumeFile) {
		for _, i := range from {
			items[i.Path] = i.Mode
		}
	}
	switch {
	case v.ConfigMap != nil:
		mode, kind = v.ConfigMap.DefaultMode, "configMap"
		add(v.ConfigMap.Items)
	case v.Secret != nil:
		mode, kind = v.Secret.DefaultMode, "secret"
		add(v.Secret.Items)
	case v.DownwardAPI != nil:
		mode, kind = v.DownwardAPI.DefaultMode, "downwardAPI"
		down(v.DownwardAPI.Items)
	case v.Projected != nil:
		mode, kind = v.Projected.DefaultMode, "projected"
		for _, s := range v.Projected.Sources {
			switch {
			case s.ConfigMap != nil:
				add(s.ConfigMap.Items)
			case s.Secret != nil:
				add(s.Secret.Items)
			case s.DownwardAPI != nil:
				down(s.DownwardAPI.Items)
			}
		}
	}
	if mode != nil && *mode != 0o644 {
		return errdefs.InvalidInputf("%s: %#o: a volume of ACI has no modes, and files are as with 0644", at.Child(kind, "defaultMode"), *mode)
	}
	for path, mode := range items {
		if mode != nil && *mode != 0o644 {
			return errdefs.InvalidInputf("%s: file %s: mode %#o: a volume of ACI has no modes, and files are as with 0644", at.Child(kind), path, *mode)
		}
	}
	return nil
}
