// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
)

// Examine returns an error if pods cannot run, because a requirement in the remote cluster or a NamespaceMap is
// missing.
func (p *provider) Examine(ctx context.Context) error {
	if err := p.Cluster.Examine(ctx); err != nil {
		return err
	}
	return p.namespaces.examineMaps(ctx)
}
