// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// Drivers of volumes that ECS can mount.
const efsDriver, ebsDriver = "efs.csi.aws.com", "ebs.csi.aws.com"

var (
	// fileSystem matches the name of a file system of EFS in a VPC.
	fileSystem = regexp.MustCompile(`^(fs-[0-9a-f]{8,40})\.efs\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$`)
	// fileSystemHandle matches the volumeHandle of efsDriver: ID, path and access point:
	// kubernetes-sigs/aws-efs-csi-driver, docs/README.md, read on 2026-11-28.
	fileSystemHandle = regexp.MustCompile(`^(fs-[0-9a-f]{8,40})(?::(/?[^:]*))?(?::(fsap-[0-9a-f]{8,40}))?$`)
)

// volumeOf returns a volume of a task: a directory on its disk, perhaps with written files, a file system of
// EFS, or a volume of EBS. A user with the right to write pods mounts only file systems that the configuration
// allows, or that have a PersistentVolume.
func volumeOf(in *service.Inputs, config Config, v *corev1.Volume, at *field.Path) (types.Volume, error) {
	out := types.Volume{Name: aws.String(v.Name)}
	claimed := in.Claimed[v.Name]
	switch {
	case v.EmptyDir != nil, podspec.Written(v):
	case v.NFS != nil:
		id, err := fileSystemOf(v.NFS, at.Child("nfs"))
		if err != nil {
			return out, err
		}
		if !slices.Contains(config.FileSystems, id) {
			return out, errdefs.InvalidInputf("%s: %q is none of fileSystems of this node's configuration", at.Child("nfs", "server"), id)
		}
		out.EfsVolumeConfiguration = mountOf(id, v.NFS.Path)
	case v.CSI != nil: // launch has the details
		out.ConfiguredAtLaunch = aws.Bool(true)
	case claimed != nil && claimed.Spec.NFS != nil:
		id, err := fileSystemOf(claimed.Spec.NFS, at.Child("persistentVolume", "nfs"))
		if err != nil {
			return out, err
		}
		out.EfsVolumeConfiguration = mountOf(id, claimed.Spec.NFS.Path)
	case claimed != nil:
		mount, err := claimOf(claimed, at)
		if err != nil {
			return out, err
		}
		out.EfsVolumeConfiguration = mount
	default:
		return out, errdefs.InvalidInputf("%s: volume %q: a task has directories that are empty, files of the API, file systems of EFS and a volume of EBS", at, v.Name)
	}
	return out, nil
}

// fileSystemOf returns the ID of a file system of EFS that a pod names as NFS.
func fileSystemOf(nfs *corev1.NFSVolumeSource, at *field.Path) (string, error) {
	name := fileSystem.FindStringSubmatch(nfs.Server)
	if name == nil {
		return "", errdefs.InvalidInputf("%s: %q: Fargate mounts file systems of EFS, by a name such as fs-0123456789abcdef0.efs.eu-central-1.amazonaws.com", at.Child("server"), nfs.Server)
	}
	if !strings.HasPrefix(nfs.Path, "/") {
		return "", errdefs.InvalidInputf("%s: %q: want a path that begins with /", at.Child("path"), nfs.Path)
	}
	return name[1], nil
}

// mountOf mounts a directory of a file system, with encryption in transit.
func mountOf(id, path string) *types.EFSVolumeConfiguration {
	return &types.EFSVolumeConfiguration{FileSystemId: &id, RootDirectory: &path, TransitEncryption: types.EFSTransitEncryptionEnabled}
}

// claimOf mounts the file system of a PersistentVolume. With the mount option iam, the role of the task needs
// the right to the file system.
func claimOf(volume *corev1.PersistentVolume, at *field.Path) (*types.EFSVolumeConfiguration, error) {
	csi := volume.Spec.CSI
	if csi == nil || csi.Driver != efsDriver {
		return nil, errdefs.InvalidInputf("%s: PersistentVolume %s: a task mounts file systems of EFS, by %s or by NFS: ECS attaches no volume of EBS that exists", at, volume.Name, efsDriver)
	}
	handle := fileSystemHandle.FindStringSubmatch(csi.VolumeHandle)
	if handle == nil {
		return nil, errdefs.InvalidInputf("%s: PersistentVolume %s: volumeHandle %q: want that of a file system of EFS, such as fs-0123456789abcdef0:/path", at, volume.Name, csi.VolumeHandle)
	}
	out := mountOf(handle[1], "/"+strings.TrimPrefix(handle[2], "/"))
	iam := slices.Contains(volume.Spec.MountOptions, "iam")
	if csi.VolumeAttributes["encryptInTransit"] == "false" && handle[3] == "" && !iam {
		out.TransitEncryption = types.EFSTransitEncryptionDisabled
	}
	if handle[3] != "" || iam {
		out.AuthorizationConfig = &types.EFSAuthorizationConfig{}
	}
	if iam {
		out.AuthorizationConfig.Iam = types.EFSAuthorizationConfigIAMEnabled
	}
	if handle[3] != "" {
		if *out.RootDirectory != "/" {
			return nil, errdefs.InvalidInputf("%s: PersistentVolume %s: volumeHandle %q: ECS takes a path or an access point", at, volume.Name, csi.VolumeHandle)
		}
		out.AuthorizationConfig.AccessPointId = &handle[3]
	}
	return out, nil
}

// volumeTypes are the types of EBS, with their smallest and largest sizes in GiB:
// https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_TaskManagedEBSVolumeConfiguration.html, read on
// 2026-11-28.
var volumeTypes = map[string][2]int64{
	"gp2": {1, 16384}, "gp3": {1, 16384}, "io1": {4, 16384}, "io2": {4, 16384}, "sc1": {125, 16384}, "st1": {125, 16384}, "standard": {1, 1024},
}

// launch returns the volumes that ECS makes when a task starts: a volume of EBS for each inline volume of
// ebsDriver. ECS removes the volume with the task. The attributes have the names of the parameters of the
// driver's StorageClasses, and size and snapshotId. A user with the right to write pods reads only snapshots
// that the configuration allows, and gets no volume larger than the configured maximum.
func launch(config Config, pod *corev1.Pod) (out []types.TaskVolumeConfiguration, err error) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.CSI == nil {
			continue
		}
		at := field.NewPath("spec", "volumes").Index(i).Child("csi")
		switch {
		case v.CSI.Driver != ebsDriver:
			return nil, errdefs.InvalidInputf("%s: %s: a task has inline volumes of %s, and claims of %s", at.Child("driver"), v.CSI.Driver, ebsDriver, efsDriver)
		case config.InfrastructureRole == "":
			return nil, errdefs.InvalidInputf("%s: name infrastructureRole in the configuration of this node, by which ECS makes volumes", at.Child("driver"))
		case len(out) > 0:
			return nil, errdefs.InvalidInputf("%s: ECS attaches one volume of EBS to a task", at)
		}
		made, err := ebsOf(config, v.CSI, at.Child("volumeAttributes"))
		if err != nil {
			return nil, err
		}
		out = append(out, types.TaskVolumeConfiguration{Name: &v.Name, ManagedEBSVolume: made})
	}
	return out, nil
}

// ebsOf returns the volume of EBS of an inline volume.
func ebsOf(config Config, csi *corev1.CSIVolumeSource, at *field.Path) (*types.TaskManagedEBSVolumeConfiguration, error) {
	out := &types.TaskManagedEBSVolumeConfiguration{
		RoleArn: &config.InfrastructureRole, TerminationPolicy: &types.TaskManagedEBSVolumeTerminationPolicy{DeleteOnTermination: aws.Bool(true)},
		FilesystemType: types.TaskFilesystemType(aws.ToString(csi.FSType)), VolumeType: aws.String("gp3"),
	}
	if fs := out.FilesystemType; fs != "" && fs != "ext3" && fs != "ext4" && fs != "xfs" {
		return nil, errdefs.InvalidInputf("%s: %q: ECS has ext3, ext4 and xfs", at.Child("fsType"), fs)
	}
	number := func(name, text string, to **int32) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n <= 0 {
			return errdefs.InvalidInputf("%s: %q: want a number", at.Key(name), text)
		}
		*to = aws.Int32(int32(n))
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(csi.VolumeAttributes)) {
		var err error
		switch text := csi.VolumeAttributes[name]; name {
		case "size":
			q, failed := resource.ParseQuantity(text)
			if failed != nil || q.Sign() <= 0 {
				return nil, errdefs.InvalidInputf("%s: %q: want an amount, such as 100Gi", at.Key(name), text)
			}
			if q.Cmp(config.LargestVolume) > 0 {
				return nil, errdefs.InvalidInputf("%s: %q is more than %s, which is largestVolume of this node's configuration: ask for less, or raise it there", at.Key(name), text, config.LargestVolume.String())
			}
			out.SizeInGiB = aws.Int32(int32(min((q.Value()+sizing.Gi-1)/sizing.Gi, 1<<30)))
		case "snapshotId":
			if !slices.Contains(config.Snapshots, text) {
				return nil, errdefs.InvalidInputf("%s: %q is none of snapshots of this node's configuration: add it there, or ask for size alone", at.Key(name), text)
			}
			out.SnapshotId = &text
		case "type":
			out.VolumeType = &text
		case "iops":
			err = number(name, text, &out.Iops)
		case "throughput":
			err = number(name, text, &out.Throughput)
		case "encrypted":
			yes, failed := strconv.ParseBool(text)
			if failed != nil {
				return nil, errdefs.InvalidInputf("%s: %q: want true or false", at.Key(name), text)
			}
			out.Encrypted = &yes
		case "kmsKeyId":
			out.KmsKeyId = &text
		default:
			return nil, errdefs.InvalidInputf("%s: a volume of EBS has size, snapshotId, type, iops, throughput, encrypted and kmsKeyId here", at.Key(name))
		}
		if err != nil {
			return nil, err
		}
	}
	sizes, known := volumeTypes[*out.VolumeType]
	switch {
	case !known:
		return nil, errdefs.InvalidInputf("%s: %q: want one of %s", at.Key("type"), *out.VolumeType, strings.Join(slices.Sorted(maps.Keys(volumeTypes)), ", "))
	case out.SizeInGiB == nil && out.SnapshotId == nil:
		return nil, errdefs.InvalidInputf("%s: want size, or snapshotId of the snapshot for the volume", at)
	case out.SizeInGiB != nil && (int64(*out.SizeInGiB) < sizes[0] || int64(*out.SizeInGiB) > sizes[1]):
		return nil, errdefs.InvalidInputf("%s: a volume of the type %s has %d to %d GiB", at.Key("size"), *out.VolumeType, sizes[0], sizes[1])
	case strings.HasPrefix(*out.VolumeType, "io") && out.Iops == nil:
		return nil, errdefs.InvalidInputf("%s: a volume of the type %s needs iops", at, *out.VolumeType)
	case *out.VolumeType != "gp3" && out.Throughput != nil:
		return nil, errdefs.InvalidInputf("%s: a volume of the type %s has none: use gp3", at.Key("throughput"), *out.VolumeType)
	}
	return out, nil
}
