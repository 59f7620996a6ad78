// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

// AttachToContainer connects attach to the main process through the plugin.
func (p *plugin) AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error {
	start := &rpc.SessionStart{Namespace: namespace, Pod: podName, Container: containerName}
	return p.attachStreams(ctx, rpc.Ability_ABILITY_ATTACH, "attach", start, attach, func(ctx context.Context, s *session) (sessionStream, error) {
		return s.AttachToContainer(ctx)
	})
}
