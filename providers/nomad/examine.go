// SPDX-License-Identifier: Apache-2.0

package nomad

import "context"

// Examine implements service.Examiner.
func (d *driver) Examine(ctx context.Context) error {
	nodes, _, err := d.client.nodes(ctx, 0)
	if err != nil {
		return err
	}
	if _, err := d.client.list(ctx, d.store.owner.prefix()); err != nil {
		return err
	}
	if _, err := d.client.variables(ctx, variablesOf+d.store.owner.prefix()); err != nil {
		return err
	}
	return placeOf(nodes, d.config).unready(d.config)
}
