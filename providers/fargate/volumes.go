// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// fileSystem is the name of a file system of EFS in a VPC.
var fileSystem = regexp.MustCompile(`^(fs-[0-9a-f]{8,40})\.efs\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$`)

// fileSystemID is the ID of one, as fileSystems of the configuration has it.
var fileSystemID = regexp.MustCompile(`^fs-[0-9a-f]{8,40}$`)

// volume returns a volume of a task: a directory on its disk, into which files are written perhaps, or a file system of EFS that the configuration
// allows: who may write pods reads none by that alone.
func (m mapping) volume(v *corev1.Volume, at *field.Path) (types.Volume, error) {
	out := types.Volume{Name: aws.String(v.Name)}
	switch {
	case v.EmptyDir != nil, podspec.Written(v):
		return out, nil
	case v.NFS != nil:
		name := fileSystem.FindStringSubmatch(v.NFS.Server)
		if name == nil {
			return out, errdefs.InvalidInputf("%s: %q: Fargate mounts file systems of EFS, by a name such as fs-0123456789abcdef0.efs.eu-central-1.amazonaws.com", at.Child("nfs", "server"), v.NFS.Server)
		}
		if !slices.Contains(m.config.FileSystems, name[1]) {
			return out, errdefs.InvalidInputf("%s: %q is none of fileSystems of this node's configuration", at.Child("nfs", "server"), name[1])
		}
		if !strings.HasPrefix(v.NFS.Path, "/") {
			return out, errdefs.InvalidInputf("%s: %q: want a path that begins with /", at.Child("nfs", "path"), v.NFS.Path)
		}
		out.EfsVolumeConfiguration = &types.EFSVolumeConfiguration{
			FileSystemId: aws.String(name[1]), RootDirectory: aws.String(v.NFS.Path), TransitEncryption: types.EFSTransitEncryptionEnabled,
		}
		return out, nil
	}
	return out, errdefs.InvalidInputf("%s: volume %q: a task has directories that are empty, files of the API, and file systems of EFS", at, v.Name)
}
