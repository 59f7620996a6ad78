// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/images"
)

// pullImages pulls every image of the registry once to a node.
func (c *Cluster) pullImages(ctx context.Context, n *node, all map[string]v1.Image) error {
	for tag := range all {
		cmd := exec.CommandContext(ctx, "ctr", "--address", strings.TrimPrefix(n.runtime.Endpoint(), "unix://"), "--namespace", "k8s.io",
			"images", "pull", "--hosts-dir", filepath.Join(c.Work, "registries"), images.Registry+"/"+tag)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("pull %s: %w: %s", tag, err, out)
		}
	}
	return nil
}
