// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// Config is what Volumes are made from.
type Config struct {
	// Root is the directory for pods: each has Root/pods/<uid>. Required. It is made if it
	// does not exist.
	Root string
	// Memory is a directory on a file system in memory, for volumes in memory where no
	// file system can be mounted. "" looks for one: in $XDG_RUNTIME_DIR, then in /dev/shm.
	Memory string
	// NoMounts says that this process mounts nothing, even if it could: the runtime
	// would not see it, being in another mount namespace for example.
	NoMounts bool
	// SubPaths says that the runtime opens what a mount has of a volume where this process can mount nothing. HostPath is then a directory
	// that no container can replace, and ImageSubPath, of a mount without image, is the way from there: steps with // between them. The
	// runtime opens each step beneath the one before, whatever links are on it, and mounts what it has opened.
	SubPaths bool
	// HostPaths are the directories that volumes of the kind hostPath may be in; none means that such
	// volumes are refused, "/" allows all.
	HostPaths []string
	// LocalVolumes are the directories that PersistentVolumes of the kind local may be in, beside HostPaths.
	LocalVolumes []string
	// Provision is the directory that MakeVolume makes volumes in, beside being one of LocalVolumes; "" makes none.
	Provision string
	// Allocatable returns what the node has for pods: the default of a limit, and the bound of volumes
	// in memory. Nil is nothing known.
	Allocatable func() corev1.ResourceList
	// Image pulls the image of a volume, if the pod may have it, and says what to mount: a mount with Image set, for
	// a runtime that mounts images, or with the HostPath of a directory that has its files. The rest of the
	// mount is filled in. Nil refuses such volumes.
	Image func(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) (*runtimeapi.Mount, error)
	// RecursiveReadOnly says whether the runtime can mount read-only including what is mounted below. Nil is no.
	RecursiveReadOnly func(pod *corev1.Pod) bool
}

// Objects reads ConfigMaps and Secrets for pods; node.PodObjects is one.
type Objects = podspec.Objects

// Bundles reads ClusterTrustBundles; node.PodTrustBundles is one.
type Bundles = podinputs.PodTrustBundles

// Certificates gives keys with certificates; node.PodCertificates is one.
type Certificates = podinputs.PodCertificates

// Claims finds PersistentVolumes; node.PodClaims is one.
type Claims = podinputs.PodClaims

// Tokens gives tokens of service accounts; node.PodTokens is one.
type Tokens = podinputs.PodTokens
