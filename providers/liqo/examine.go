// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
)

// Examine says why pods could not run: what of the remote cluster is missing, or that nobody finds the NamespaceMap.
func (p *provider) Examine(ctx context.Context) error {
	if err := p.Cluster.Examine(ctx); err != nil {
		return err
	}
	return p.namespaces.examine(ctx)
}
