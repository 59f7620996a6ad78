// SPDX-License-Identifier: Apache-2.0

package podruntime

import "time"

// periodic is the schedule of a periodic background task. The worker of the pod owns it.
type periodic struct {
	running bool
	at      time.Time // the time of the next run; zero means none
}

// await returns the time until the next run, and false if the task may run now. While the task is running, there is no need to wait, because its end
// wakes the worker.
func (p *periodic) await(now time.Time) (wait time.Duration, waits bool) {
	switch {
	case p.running:
		return idle, true
	case now.Before(p.at):
		return p.at.Sub(now), true
	}
	return 0, false
}

// begin records the start of the task.
func (p *periodic) begin() { p.running = true }

// end records the end of the task, and the time of the next run.
func (p *periodic) end(next time.Time) { p.running, p.at = false, next }
