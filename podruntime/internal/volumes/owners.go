// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// ownedFiles sets the owners of a volume's files if the spec names users, because providerkit only knows the fields of older API versions.
func ownedFiles(volume *corev1.Volume, files []podspec.File) map[string]file {
	out := make(map[string]file, len(files))
	for i := range files {
		f := file{data: files[i].Data, mode: files[i].Mode, user: files[i].User}
		all, own, private := fileOwners(volume, &files[i])
		for _, user := range []*int64{all, own} {
			if user != nil {
				f.user = user
			}
		}
		if private && f.user != nil {
			f.mode = 0o600
		}
		out[files[i].Path] = f
	}
	return out
}

// fileOwners returns the owners in the spec: for the volume, and for the file. Only its owner can read a private file.
func fileOwners(volume *corev1.Volume, f *podspec.File) (all, own *int64, private bool) {
	switch {
	case volume.ConfigMap != nil:
		return volume.ConfigMap.DefaultUser, ofKeys(volume.ConfigMap.Items, f.Path), false
	case volume.Secret != nil:
		return volume.Secret.DefaultUser, ofKeys(volume.Secret.Items, f.Path), false
	case volume.DownwardAPI != nil:
		return volume.DownwardAPI.DefaultUser, ofFields(volume.DownwardAPI.Items, f.Path), false
	}
	all = volume.Projected.DefaultUser
	switch s := &volume.Projected.Sources[f.Source]; {
	case s.ConfigMap != nil:
		own = ofKeys(s.ConfigMap.Items, f.Path)
	case s.Secret != nil:
		own = ofKeys(s.Secret.Items, f.Path)
	case s.DownwardAPI != nil:
		own = ofFields(s.DownwardAPI.Items, f.Path)
	case s.ServiceAccountToken != nil:
		return all, s.ServiceAccountToken.User, true
	case s.ClusterTrustBundle != nil:
		return all, s.ClusterTrustBundle.User, true
	case s.PodCertificate != nil:
		return all, s.PodCertificate.User, true
	}
	return all, own, false
}

// ofKeys returns the user of the last item with a path, because the last item wins.
func ofKeys(items []corev1.KeyToPath, name string) (user *int64) {
	for i := range items {
		if items[i].Path == name {
			user = items[i].User
		}
	}
	return user
}

func ofFields(items []corev1.DownwardAPIVolumeFile, name string) (user *int64) {
	for i := range items {
		if path.Clean(items[i].Path) == name {
			user = items[i].User
		}
	}
	return user
}
