// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
)

// Examine implements cli.Examiner.
func (p *provider) Examine(ctx context.Context) error {
	if _, err := p.slurm.jobs(ctx); err != nil {
		return err
	}
	_, err := p.partition(ctx)
	return err
}
