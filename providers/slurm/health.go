// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"errors"
	"fmt"
	"time"
)

// stuckTime is how long a round of the commands of Slurm, or one of the files, may take.
const stuckTime = 2 * time.Minute

// tellHealth tells the provider why pods may not be as they are known, or that they are.
func (d *driver) tellHealth() { d.provider.Cache().Fails(d.health()) }

// health tells why pods may not be as they are known; nil: they are.
func (d *driver) health() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.listErr, d.away, d.stuck())
}

// stuck tells which loop has not come round for too long. The caller holds mu.
func (d *driver) stuck() error {
	for what, at := range map[string]time.Time{"the commands of Slurm": d.listsAt, "the files in sharedDir": d.readAt} {
		if !at.IsZero() && time.Since(at) > stuckTime {
			return fmt.Errorf("%s have not answered for %v: pods are as they were then", what, time.Since(at).Round(time.Second))
		}
	}
	return nil
}
