// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/base64"
	"io/fs"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// resolved is a pod with all that comes from other objects.
type resolved struct{ *service.Inputs }

// volume maps a volume.
func (r resolved) volume(v *corev1.Volume, at *field.Path) (volume, error) {
	out := volume{Name: v.Name}
	switch {
	case podspec.Written(v):
		out.Type = "ConfigFileVolume"
		for _, f := range r.Files[v.Name] {
			out.ConfigFileVolume.ConfigFileToPath = append(out.ConfigFileVolume.ConfigFileToPath, configFile{
				Path: f.Path, Content: base64.StdEncoding.EncodeToString(f.Data), Mode: new(modeOf(f)),
			})
		}
	case v.EmptyDir != nil:
		if m := v.EmptyDir.Medium; m != corev1.StorageMediumDefault && m != corev1.StorageMediumMemory {
			return out, errdefs.InvalidInputf("%s: a group of ECI has disk and Memory", at.Child("emptyDir", "medium"))
		}
		out.Type = "EmptyDirVolume"
		out.EmptyDirVolume.Medium = string(v.EmptyDir.Medium)
		if v.EmptyDir.SizeLimit != nil {
			out.EmptyDirVolume.SizeLimit = v.EmptyDir.SizeLimit.String()
		}
	case v.NFS != nil:
		out.Type = "NFSVolume"
		out.NFSVolume.Server, out.NFSVolume.Path, out.NFSVolume.ReadOnly = v.NFS.Server, v.NFS.Path, v.NFS.ReadOnly
	default:
		return out, errdefs.InvalidInputf("%s: volume %q: a group of ECI has files, directories that are empty, and NFS", at, v.Name)
	}
	return out, nil
}

// modeOf are the bits of a file's mode as Unix has them. ECI writes files as root, so those for one other user are made readable for it.
func modeOf(f podspec.File) int64 {
	mode := int64(f.Mode.Perm())
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if f.Mode&flag != 0 {
			mode |= bit
		}
	}
	if f.User != nil && *f.User != 0 {
		mode |= 0o044
	}
	return mode
}

// logins are the credentials that an image of the pod needs, one for each registry: ECI takes ten. It takes a name and a password only.
func (r resolved) logins() (out []registryCredential, err error) {
	err = service.Containers(r.Pod, func(container *corev1.Container, _ bool, at *field.Path) error {
		image := container.Image
		n := slices.IndexFunc(r.Logins, func(c node.RegistryCredential) bool { return c.Username != "" && c.Matches(image) })
		if n < 0 {
			return nil
		}
		c := registryCredential{host(r.Logins[n].Registry), r.Logins[n].Username, r.Logins[n].Password}
		if strings.Contains(c.Server, "*") {
			c.Server, _, _ = strings.Cut(image, "/")
		}
		switch had := slices.IndexFunc(out, func(had registryCredential) bool { return had.Server == c.Server }); {
		case had < 0:
			out = append(out, c)
		case out[had] != c:
			return errdefs.InvalidInputf("%s: a container group has one login for a registry, and the images of the pod need two for %s: use one login that may read all of them", at.Child("image"), c.Server)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b registryCredential) int { return strings.Compare(a.Server, b.Server) })
	return out, err
}

// host is the name of a registry, which may be written as an URL.
func host(server string) string {
	_, after, found := strings.Cut(server, "://")
	if found {
		server = after
	}
	name, _, _ := strings.Cut(server, "/")
	return name
}
