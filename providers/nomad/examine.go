// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
)

// Examine implements cli.Examiner.
func (p *provider) Examine(ctx context.Context) error {
	nodes, _, err := p.client.nodes(ctx, 0)
	if err != nil {
		return err
	}
	if _, err := p.client.list(ctx, p.store.owner.prefix()); err != nil {
		return err
	}
	if _, err := p.client.variables(ctx, "nomad/jobs/"+p.store.owner.prefix()); err != nil {
		return err
	}
	return placeOf(nodes, p.config).unready(p.config)
}
