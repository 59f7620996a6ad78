// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListImages returns the images that match filter.
func (c *Client) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	answer, err := c.images.ListImages(ctx, &runtimeapi.ListImagesRequest{Filter: filter})
	return answer.GetImages(), err
}

// ImageStatus returns the status of an image. Image is nil if the runtime does not have the image.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	answer, err := c.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: image, Verbose: verbose})
	if err != nil {
		return nil, err
	}
	return answer, requireField(answer.GetImage() == nil || answer.GetImage().GetId() != "", "id of image "+image.GetImage())
}

// PullImage pulls an image and returns its reference. It has no timeout, because the runtime ends a pull without
// progress.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	answer, err := c.images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: image, Auth: auth, SandboxConfig: sandbox})
	if status.Code(err) == codes.Unknown {
		// Users read the message in events, where the gRPC code Unknown would only distract.
		return "", errors.New(status.Convert(err).Message())
	}
	if err != nil {
		return "", err
	}
	return answer.GetImageRef(), requireField(answer.GetImageRef() != "", "reference of image "+image.GetImage())
}

// RemoveImage removes an image. A missing image is no error.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	_, err := c.images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: image})
	return err
}

// ImageFsInfo returns the disk usage of images and containers.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return c.images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
}
