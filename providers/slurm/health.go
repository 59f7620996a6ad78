// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"errors"
	"fmt"
	"time"
)

// stuckTime bounds a round of Slurm's commands, and a round over files.
const stuckTime = 2 * time.Minute

// tellHealth reports to the provider whether the known states of pods may be outdated, and why.
func (d *driver) tellHealth() { d.provider.Cache().Fails(d.health()) }

// health returns the reason why the known states of pods may be outdated; nil if they are not.
func (d *driver) health() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.listErr, d.away, d.stuck())
}

// stuck names the loop that has not finished a round for too long. The caller holds mu.
func (d *driver) stuck() error {
	for what, at := range map[string]time.Time{"the commands of Slurm": d.listsAt, "the files in sharedDir": d.readAt} {
		if !at.IsZero() && time.Since(at) > stuckTime {
			return fmt.Errorf("%s have not answered for %v: pods are as they were then", what, time.Since(at).Round(time.Second))
		}
	}
	return nil
}
