// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
)

// imageService is the image service of a Runtime.
type imageService struct{ r *Runtime }

// Images returns the image service of the runtime.
func (r *Runtime) Images() imageService { return imageService{r} }

// hostImage returns a placeholder for an image with isolation none.
func hostImage(ref string) images.Image { return images.Image{ID: "host:" + ref, Tags: []string{ref}} }

func imageRef(i images.Image) string {
	if len(i.Digests) > 0 {
		return i.Digests[0]
	}
	return i.ID
}

// imageName returns the display name of the image, or "".
func imageName(i images.Image) string {
	if len(i.Tags) > 0 {
		return i.Tags[0]
	}
	return ""
}

func (s imageService) ListImages(_ context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	var list []*runtimeapi.Image
	for _, i := range s.r.images.List() {
		image := criImage(i)
		if want := filter.GetImage().GetImage(); want == "" || want == i.ID || contains(i.Tags, want) {
			list = append(list, image)
		}
	}
	return list, nil
}

func contains(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}

func criImage(i images.Image) *runtimeapi.Image {
	image := &runtimeapi.Image{Id: i.ID, RepoTags: i.Tags, RepoDigests: i.Digests, Size: i.Size, Spec: &runtimeapi.ImageSpec{Image: i.ID}}
	user, _, _ := strings.Cut(i.Config.User, ":")
	if uid, err := strconv.ParseInt(user, 10, 64); err == nil {
		image.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		image.Username = user
	}
	return image
}

// ImageStatus returns a local image, or an empty response. Images in the configured directories are local.
func (s imageService) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	if !s.r.isContained() {
		return &runtimeapi.ImageStatusResponse{Image: criImage(hostImage(spec.GetImage()))}, nil
	}
	image, err := s.r.images.Get(ctx, spec.GetImage())
	if errdefs.IsNotFound(err) {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ImageStatusResponse{Image: criImage(image)}, nil
}

// PullImage gets an image and returns its ID.
func (s imageService) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	if !s.r.isContained() {
		return hostImage(spec.GetImage()).ID, nil
	}
	image, err := s.r.images.Pull(ctx, spec.GetImage(), images.Auth{
		Username: auth.GetUsername(), Password: auth.GetPassword(), IdentityToken: auth.GetIdentityToken(), RegistryToken: auth.GetRegistryToken(),
	})
	if err == nil {
		return image.ID, nil
	}
	code := codes.Unknown
	var refused *transport.Error
	if errors.As(err, &refused) {
		switch refused.StatusCode {
		case http.StatusNotFound:
			code = codes.NotFound
		case http.StatusUnauthorized, http.StatusForbidden:
			code = codes.PermissionDenied
		}
	}
	return "", status.Error(code, err.Error())
}

// RemoveImage removes an image that no container uses.
func (s imageService) RemoveImage(ctx context.Context, spec *runtimeapi.ImageSpec) error {
	for _, i := range s.r.images.List() {
		if i.ID != spec.GetImage() && !contains(i.Tags, spec.GetImage()) && !contains(i.Digests, spec.GetImage()) {
			continue
		}
		for _, c := range s.r.containersOf("") {
			if c.ImageID == i.ID || s.r.mountsImage(c, i) {
				return status.Errorf(codes.FailedPrecondition, "image %s is used by container %s", spec.GetImage(), c.id)
			}
		}
	}
	return s.r.images.Remove(spec.GetImage())
}

// ImageFsInfo returns the disk usage of images.
func (s imageService) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	var used uint64
	for _, i := range s.r.images.List() {
		used += i.Size
	}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: s.r.images.Dir()},
		UsedBytes: &runtimeapi.UInt64Value{Value: used}, InodesUsed: &runtimeapi.UInt64Value{},
	}}}, nil
}

func (s imageService) Close(context.Context) error { return nil }
