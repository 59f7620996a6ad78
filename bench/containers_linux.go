// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/virtual-kubelet/virtual-kubelet/internal/containerdtest"
)

// containerd is a containerd of our own.
type containerd struct{ *containerdtest.Containerd }

// Cgroup is the one that pods are made in.
func (c containerd) Cgroup() string { return c.CgroupParent }

// startContainers starts a containerd that has the image of the pods.
func startContainers(ctx context.Context) (containers, error) {
	c, err := containerdtest.New(ctx, containerdtest.Options{})
	if err != nil {
		return nil, err
	}
	image, err := containerdtest.PauseImage(ctx, appImage)
	if err == nil {
		err = c.Import(ctx, image)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return containerd{c}, nil
}
