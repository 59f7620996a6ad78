// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// containerMounts returns the mounts of a container: the files of its sandbox, and the mounts of its
// configuration.
func (r *Runtime) containerMounts(ctx context.Context, s *sandbox, config *runtimeapi.ContainerConfig) ([]shim.Mount, error) {
	var mounts []shim.Mount
	if r.isContained() {
		for target, source := range map[string]string{"/etc/hostname": hostnameFile, "/etc/resolv.conf": resolvFile} {
			path := filepath.Join(s.dir, source)
			if _, err := os.Stat(path); err != nil && source == resolvFile {
				path = "/etc/resolv.conf"
			}
			mounts = append(mounts, shim.Mount{Source: path, Target: target})
		}
	}
	for _, m := range config.GetMounts() {
		if !r.isContained() {
			if ownFile(m.GetContainerPath()) {
				continue
			}
			return nil, status.Errorf(codes.InvalidArgument,
				"nothing can be mounted at %s: with isolation %s containers have no mounts (automountServiceAccountToken: false is needed too)", m.GetContainerPath(), r.Isolation())
		}
		if m.GetImage().GetImage() != "" {
			mount, err := r.imageMount(ctx, m)
			if err != nil {
				return nil, err
			}
			mounts = append(mounts, mount)
			continue
		}
		if m.GetImageSubPath() != "" && !r.oci.isGVisor() {
			return nil, status.Errorf(codes.InvalidArgument, "mount %s: with isolation %s a mount is the whole of its hostPath", m.GetContainerPath(), r.Isolation())
		}
		mounts = append(mounts, shim.Mount{
			Source: m.GetHostPath(), Way: m.GetImageSubPath(), Target: filepath.Join("/", m.GetContainerPath()),
			ReadOnly: m.GetReadonly(), RecursiveReadOnly: m.GetRecursiveReadOnly(),
			Shared: m.GetPropagation() == runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL,
			Slave:  m.GetPropagation() == runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER,
		})
	}
	for _, d := range config.GetDevices() {
		if !r.isContained() {
			return nil, status.Errorf(codes.InvalidArgument, "device %s: with isolation %s containers have no devices of their own", d.GetHostPath(), r.Isolation())
		}
		mounts = append(mounts, shim.Mount{Source: d.GetHostPath(), Target: d.GetContainerPath(), Device: true})
	}
	return mounts, nil
}

// imageMount returns the read-only mount of the directory of an image, or of a directory below it. No symbolic
// link of the image can lead out of that directory.
func (r *Runtime) imageMount(ctx context.Context, m *runtimeapi.Mount) (shim.Mount, error) {
	image, err := r.imageFor(ctx, m.GetImage().GetImage())
	if err != nil {
		return shim.Mount{}, err
	}
	source := r.images.Root(image.ID)
	if sub := filepath.Clean(m.GetImageSubPath()); sub != "." {
		root, err := os.OpenRoot(source)
		if err != nil {
			return shim.Mount{}, err
		}
		defer root.Close()
		info, err := root.Stat(sub)
		if err == nil && !info.IsDir() {
			err = errors.New("it is no directory")
		}
		if err != nil {
			return shim.Mount{}, status.Errorf(codes.InvalidArgument, "mount %s of image %s at %s: %v", sub, m.GetImage().GetImage(), m.GetContainerPath(), err)
		}
		source = filepath.Join(source, sub)
	}
	return shim.Mount{Source: source, Target: filepath.Join("/", m.GetContainerPath()), ReadOnly: true, RecursiveReadOnly: true}, nil
}

// mountsImage reports whether a container mounts the image, or a part of it, as a volume.
func (r *Runtime) mountsImage(c *container, image images.Image) bool {
	for _, m := range c.Spec.Mounts {
		if strings.HasPrefix(m.Source+"/", r.images.Root(image.ID)+"/") {
			return true
		}
	}
	return false
}

// ownFile reports whether a mount at path can be omitted with isolation none.
func ownFile(path string) bool {
	switch path {
	case "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log":
		return true
	}
	return false
}
