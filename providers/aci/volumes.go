// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
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
		for _, f := range r.Files[v.Name] {
			if strings.Contains(f.Path, "/") {
				return nil, errdefs.InvalidInputf("%s: file %s: a volume of ACI has files and no directories", at, f.Path)
			}
			if len(f.Data) == 0 {
				return nil, errdefs.InvalidInputf("%s: file %s: a volume of ACI has no files that are empty: leave it out by items, or write something into it", at, f.Path)
			}
			out.Secret[f.Path] = new(base64.StdEncoding.EncodeToString(f.Data))
		}
		if len(out.Secret) == 0 { // ACI requires a file, and missing optional objects have none
			out.Secret, out.EmptyDir = nil, map[string]any{}
		}
	case v.EmptyDir != nil:
		if v.EmptyDir.SizeLimit != nil && !v.EmptyDir.SizeLimit.IsZero() {
			return nil, errdefs.InvalidInputf("%s: a volume of ACI has no limit", at.Child("emptyDir", "sizeLimit"))
		}
		out.EmptyDir = map[string]any{}
	case v.AzureFile != nil, v.CSI != nil, r.Claimed[v.Name] != nil:
		share, err := r.shareOf(v, at)
		if err != nil {
			return nil, err
		}
		s := r.shares[v.Name]
		if s == nil || len(s.Data[accountName]) == 0 || len(s.Data[accountKey]) == 0 {
			return nil, errdefs.InvalidInputf("%s: the secret %s has no %s or no %s", share.secretAt, share.secret, accountName, accountKey)
		}
		out.AzureFile = &aci.AzureFileVolume{
			ShareName: &share.name, StorageAccountName: new(string(s.Data[accountName])), StorageAccountKey: new(string(s.Data[accountKey])),
		}
		if share.readOnly {
			out.AzureFile.ReadOnly = new(true)
		}
	default:
		return nil, errdefs.InvalidInputf("%s: volume %q: a group of ACI has files, directories that are empty, and shares of Azure Files", at, v.Name)
	}
	return out, nil
}

// csiDriver is the driver of Azure Files. Its inline volumes are the same as azureFile.
const csiDriver = "file.csi.azure.com"

// share is a share of Azure Files.
type share struct {
	name, secret string
	namespace    string // of the secret; "" is the namespace of the pod
	secretAt     *field.Path
	readOnly     bool
}

// shareOf returns the share of a volume: as azureFile, as an inline volume of the driver, or by a claim. Mount
// options are left out, because ACI mounts shares in its own way.
func (r resolved) shareOf(v *corev1.Volume, at *field.Path) (share, error) {
	switch volume := r.Claimed[v.Name]; {
	case volume != nil:
		out, err := shareOfClaim(volume, at)
		out.readOnly = r.ReadOnly(v)
		return out, err
	case v.AzureFile != nil:
		return share{name: v.AzureFile.ShareName, secret: v.AzureFile.SecretName, secretAt: at.Child("azureFile", "secretName"), readOnly: v.AzureFile.ReadOnly}, nil
	}
	at = at.Child("csi")
	if v.CSI.Driver != csiDriver {
		return share{}, errdefs.InvalidInputf("%s: %s: a group of ACI has volumes of %s, and of no other driver", at.Child("driver"), v.CSI.Driver, csiDriver)
	}
	attributes := at.Child("volumeAttributes")
	out := share{secretAt: attributes.Key("secretName"), readOnly: v.CSI.ReadOnly != nil && *v.CSI.ReadOnly}
	for _, name := range slices.Sorted(maps.Keys(v.CSI.VolumeAttributes)) {
		switch value := v.CSI.VolumeAttributes[name]; strings.ToLower(name) { // the driver ignores the case of names
		case "sharename":
			out.name = value
		case "secretname":
			out.secret = value
		case "mountoptions":
		default:
			return share{}, errdefs.InvalidInputf("%s: ACI mounts a share by shareName and secretName alone", attributes.Key(name))
		}
	}
	if out.name == "" || out.secret == "" {
		return share{}, errdefs.InvalidInputf("%s: want shareName, and secretName for the secret with %s and %s", attributes, accountName, accountKey)
	}
	return out, nil
}

// shareOfClaim returns the share of a PersistentVolume, with the secret in the place where the driver looks for
// it: kubernetes-sigs/azurefile-csi-driver, docs/driver-parameters.md and docs/csi-debug.md, read on 2026-11-28.
func shareOfClaim(volume *corev1.PersistentVolume, at *field.Path) (share, error) {
	wrong := func(format string, args ...any) (share, error) {
		return share{}, errdefs.InvalidInputf("%s: PersistentVolume %s: %s", at, volume.Name, fmt.Sprintf(format, args...))
	}
	if f := volume.Spec.AzureFile; f != nil {
		return share{name: f.ShareName, secret: f.SecretName, namespace: value(f.SecretNamespace), secretAt: at}, nil
	}
	csi := volume.Spec.CSI
	if csi == nil || csi.Driver != csiDriver {
		return wrong("a group of ACI mounts shares of Azure Files, by %s or azureFile", csiDriver)
	}
	out, attributes := share{secretAt: at}, map[string]string{}
	for name, value := range csi.VolumeAttributes {
		attributes[strings.ToLower(name)] = value
	}
	handle := append(strings.Split(csi.VolumeHandle, "#"), "", "") // GROUP#ACCOUNT#SHARE, for a share made by the driver
	account := cmp.Or(attributes["storageaccount"], handle[1])
	out.name = cmp.Or(attributes["sharename"], handle[2])
	out.secret, out.namespace = attributes["secretname"], attributes["secretnamespace"]
	if ref := csi.NodeStageSecretRef; ref != nil {
		out.secret, out.namespace = ref.Name, ref.Namespace
	}
	if out.secret == "" && account != "" {
		out.secret = "azure-storage-account-" + account + "-secret"
	}
	switch {
	case strings.EqualFold(attributes["protocol"], "nfs"):
		return wrong("ACI mounts shares by SMB, and this one is of the protocol nfs")
	case attributes["foldername"] != "" || attributes["diskname"] != "":
		return wrong("ACI mounts whole shares, without folderName and diskName")
	case out.name == "" || out.secret == "":
		return wrong("want shareName, and nodeStageSecretRef for the secret with %s and %s", accountName, accountKey)
	}
	return out, nil
}

// modes refuses file modes that a program may rely on, because ACI has no field for them. The default mode is
// accepted.
func modes(v *corev1.Volume, at *field.Path) error {
	kind, mode, items := "", (*int32)(nil), map[string]*int32{}
	add := func(keys []corev1.KeyToPath, fields []corev1.DownwardAPIVolumeFile) {
		for _, i := range keys {
			items[i.Path] = i.Mode
		}
		for _, i := range fields {
			items[i.Path] = i.Mode
		}
	}
	switch {
	case v.ConfigMap != nil:
		kind, mode = "configMap", v.ConfigMap.DefaultMode
		add(v.ConfigMap.Items, nil)
	case v.Secret != nil:
		kind, mode = "secret", v.Secret.DefaultMode
		add(v.Secret.Items, nil)
	case v.DownwardAPI != nil:
		kind, mode = "downwardAPI", v.DownwardAPI.DefaultMode
		add(nil, v.DownwardAPI.Items)
	case v.Projected != nil:
		kind, mode = "projected", v.Projected.DefaultMode
		for _, s := range v.Projected.Sources {
			add(slices.Concat(value(s.ConfigMap).Items, value(s.Secret).Items), value(s.DownwardAPI).Items)
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
