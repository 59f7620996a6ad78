// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// largestFile and largestFiles are the maximum bytes of a file, and of all files of a group.
const (
	largestFile  = 32 << 10
	largestFiles = 60 << 10
)

// resolved is a pod with all values from other objects.
type resolved struct{ *service.Inputs }

// volume maps a volume.
func (r resolved) volume(v *corev1.Volume, at *field.Path) (volume, error) {
	out := volume{Name: v.Name}
	switch {
	case podspec.Written(v):
		out.Type = "ConfigFileVolume"
		for _, f := range r.Files[v.Name] {
			if len(f.Data) > largestFile {
				return out, errdefs.InvalidInputf("%s: volume %q: file %s has %d bytes, and ECI takes files of %d: put it into the image or on NFS", at, v.Name, f.Path, len(f.Data), largestFile)
			}
			out.ConfigFileVolume.ConfigFileToPath = append(out.ConfigFileVolume.ConfigFileToPath, configFile{
				Path: f.Path, Content: base64.StdEncoding.EncodeToString(f.Data), Mode: modeOf(f),
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
	case r.Claimed[v.Name] != nil:
		return out, r.claim(v, &out, at)
	default:
		return out, errdefs.InvalidInputf("%s: volume %q: a group of ECI has files, directories that are empty, NFS, and what it mounts by claims", at, v.Name)
	}
	return out, nil
}

// Drivers of PersistentVolumes that ECI can mount: kubernetes-sigs/alibaba-cloud-csi-driver, docs/nas.md and
// docs/disk.md, read on 2026-11-28.
const nasDriver, diskDriver = "nasplugin.csi.alibabacloud.com", "diskplugin.csi.alibabacloud.com"

// diskFileSystems are the file systems of disks, the default first:
// https://www.alibabacloud.com/help/en/eci/user-guide/mount-a-disk-volume of 2026-04-01.
var diskFileSystems = []string{"ext4", "ext3", "xfs", "vfat"}

// claim fills a volume with a PersistentVolumeClaim. Mount options are left out, because ECI mounts in its own
// way.
func (r resolved) claim(v *corev1.Volume, out *volume, at *field.Path) error {
	claimed := r.Claimed[v.Name]
	wrong := func(why string) error {
		return errdefs.InvalidInputf("%s: PersistentVolume %s: %s", at, claimed.Name, why)
	}
	csi := claimed.Spec.CSI
	switch {
	case claimed.Spec.NFS != nil:
		out.Type = "NFSVolume"
		out.NFSVolume.Server, out.NFSVolume.Path = claimed.Spec.NFS.Server, claimed.Spec.NFS.Path
		out.NFSVolume.ReadOnly = r.ReadOnly(v)
	case csi != nil && csi.Driver == nasDriver:
		if p := csi.VolumeAttributes["mountProtocol"]; p != "" && p != "nfs" {
			return wrong("ECI mounts file systems by NFS, and this one has the mountProtocol " + p)
		}
		out.Type = "NFSVolume"
		out.NFSVolume.Server, out.NFSVolume.Path = csi.VolumeAttributes["server"], cmp.Or(csi.VolumeAttributes["path"], "/")
		out.NFSVolume.ReadOnly = r.ReadOnly(v)
		if out.NFSVolume.Server == "" {
			return wrong("want the attribute server, which is the mount target of the file system")
		}
	case csi != nil && csi.Driver == diskDriver:
		out.Type = "FlexVolume"
		out.FlexVolume.Driver, out.FlexVolume.FsType = "alicloud/disk", cmp.Or(csi.FSType, diskFileSystems[0])
		if !slices.Contains(diskFileSystems, out.FlexVolume.FsType) {
			return wrong("fsType: want one of " + strings.Join(diskFileSystems, ", "))
		}
		options, err := json.Marshal(map[string]string{"volumeId": csi.VolumeHandle})
		if err != nil {
			return err
		}
		out.FlexVolume.Options = string(options)
	default:
		return wrong("a group of ECI mounts NFS, file systems of " + nasDriver + " and disks of " + diskDriver)
	}
	return nil
}

// modeOf returns the permissions of a file for ECI: four octal digits, always with 0 first. ECI writes files as
// root, so modeOf makes a file for another user readable for that user.
func modeOf(f podspec.File) string {
	mode := f.Mode.Perm()
	if f.User != nil && *f.User != 0 {
		mode |= 0o044
	}
	return fmt.Sprintf("%04o", mode)
}

// checkFiles refuses files that are too large in total.
func (r resolved) checkFiles(at *field.Path) error {
	all, largest, name := 0, 0, ""
	for _, volume := range slices.Sorted(maps.Keys(r.Files)) {
		size := 0
		for _, f := range r.Files[volume] {
			size += len(f.Data)
		}
		all += size
		if size > largest {
			largest, name = size, volume
		}
	}
	if all <= largestFiles {
		return nil
	}
	return errdefs.InvalidInputf("%s: the files of the pod have %d bytes, of which volume %q has %d, and ECI takes %d: put some into the image or on NFS", at, all, name, largest, largestFiles)
}

// logins returns the credentials for the images of the pod, one for each registry. ECI accepts ten, each with a user name and a
// password.
func (r resolved) logins() (out []registryCredential, err error) {
	err = service.Containers(r.Pod, func(container *corev1.Container, _ bool, at *field.Path) error {
		login, ok := r.RegistryLogin(container.Image)
		if !ok {
			return nil
		}
		c := registryCredential{login.Registry, login.Username, login.Password}
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
