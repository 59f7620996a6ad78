// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
)

// bundle returns the input of a pod's job, with the names of images for a registry.
func (d *driver) bundle(ctx context.Context, in *service.Inputs) (podjob.Bundle, error) {
	b, err := pack.Bundle(ctx, in, d.in, d.config.Containers)
	if err == nil {
		err = d.config.setImages(b.Pod)
	}
	return b, err
}
