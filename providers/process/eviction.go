// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
)

// evictionFile stores the default thresholds, computed before any pod ran on the machine.
const evictionFile = "eviction.json"

// evictionHard returns the configured thresholds, or the defaults. The defaults depend on the resources that are
// available without pods, so a daemon that finds existing pods uses the stored thresholds of the earlier daemon.
func (r *Runtime) evictionHard(ctx context.Context) map[string]string {
	if r.config.EvictionHard != nil {
		return r.config.EvictionHard
	}
	path, kept := filepath.Join(r.config.StateDir, evictionFile), map[string]string{}
	if len(r.sandboxes) > 0 && durable.ReadJSON(path, &kept) == nil {
		return kept
	}
	now := podruntime.DefaultEvictionHard(r.config.StateDir)
	if err := durable.WriteJSON(path, now); err != nil {
		log.G(ctx).WithError(err).Warn("process provider: keep the thresholds of evictions for the next daemon; it measures them anew")
	}
	return now
}
