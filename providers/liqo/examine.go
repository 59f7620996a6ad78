// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
)

// Examine reports why pods could not run: requirements missing in the remote cluster, or a missing NamespaceMap.
func (p *provider) Examine(ctx context.Context) error {
	if err := p.Cluster.Examine(ctx); err != nil {
		return err
	}
	return p.namespaces.examineMaps(ctx)
}
