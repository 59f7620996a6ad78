// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListImages returns the images for filter.
func (c *Client) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	answer, err := c.images.ListImages(ctx, &runtimeapi.ListImagesRequest{Filter: filter})
	return answer.GetImages(), err
}

// ImageStatus returns the runtime's data of an image. It has no Image if the runtime lacks the image.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	answer, err := c.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: image, Verbose: verbose})
	if err != nil {
		return nil, err
	}
	return answer, requireField(answer.GetImage() == nil || answer.GetImage().GetId() != "", "id of image "+image.GetImage())
}

// PullImage pulls an image and returns its reference. It takes as long as the runtime makes progress.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	answer, err := c.images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: image, Auth: auth, SandboxConfig: sandbox})
	if status.Code(err) == codes.Unknown {
		// Users read this in events, where a meaningless code is in the way.
		return "", errors.New(status.Convert(err).Message())
	}
	if err != nil {
		return "", err
	}
	return answer.GetImageRef(), requireField(answer.GetImageRef() != "", "reference of image "+image.GetImage())
}

// RemoveImage removes an image; it is no error if there is none.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	_, err := c.images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: image})
	return err
}

// ImageFsInfo returns the use of the disk by images and containers.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return c.images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
}
