// SPDX-License-Identifier: Apache-2.0

package slurm

import "context"

// Examine implements service.Examiner.
func (d *driver) Examine(ctx context.Context) error {
	if _, err := d.slurm.jobs(ctx); err != nil {
		return err
	}
	_, err := d.partition(ctx)
	return err
}
