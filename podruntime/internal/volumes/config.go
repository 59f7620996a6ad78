// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// Config is the configuration of Volumes.
type Config struct {
	// Root is the directory for pods: each has Root/pods/<uid>. Required. It is made if it
	// does not exist.
	Root string
	// Memory is a directory on a file system in memory, for volumes in memory if this process may not mount. Default: a directory in $XDG_RUNTIME_DIR
	// or /dev/shm.
	Memory string
	// NoMounts forbids this process to mount, because the runtime would not see the mounts, for example in another mount namespace.
	NoMounts bool
	// SubPaths means that the runtime opens subPaths of volumes if this process may not mount. HostPath is then a directory that no container can
	// replace, and ImageSubPath, of a mount without image, is the path below it, with // between its steps. The runtime opens each step inside the
	// previous one, even if there are links, and mounts the opened file.
	SubPaths bool
	// HostPaths are the directories for volumes of the kind hostPath. An empty list refuses such volumes; "/"
	// allows all.
	HostPaths []string
	// LocalVolumes are the directories for PersistentVolumes of the kind local, in addition to HostPaths.
	LocalVolumes []string
	// Provision is the directory in which MakeVolume makes volumes; it also counts as one of LocalVolumes. "" disables MakeVolume.
	Provision string
	// Allocatable returns the allocatable resources of the node: the default of a limit, and the bound of
	// volumes in memory. Nil means unknown.
	Allocatable func() corev1.ResourceList
	// Image pulls the image of a volume, if the pod may have it. It returns a mount with Image set, for a
	// runtime that mounts images, or with the HostPath of a directory with the files. Volumes fills in the rest.
	// Nil refuses such volumes.
	Image func(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) (*runtimeapi.Mount, error)
	// RecursiveReadOnly reports whether the runtime supports recursive read-only mounts. Nil means no.
	RecursiveReadOnly func(pod *corev1.Pod) bool
}

// Objects reads ConfigMaps and Secrets for pods; node.PodObjects is an implementation.
type Objects = podspec.Objects

// Bundles reads ClusterTrustBundles; node.PodTrustBundles is an implementation.
type Bundles = podinputs.PodTrustBundles

// Certificates provides keys with certificates; node.PodCertificates is an implementation.
type Certificates = podinputs.PodCertificates

// Claims finds PersistentVolumes; node.PodClaims is an implementation.
type Claims = podinputs.PodClaims

// Tokens provides tokens of service accounts; node.PodTokens is an implementation.
type Tokens = podinputs.PodTokens
