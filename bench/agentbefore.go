// SPDX-License-Identifier: Apache-2.0

package main

import "context"

// before is the program of an earlier version, in each of the scenarios of ours. With containers, it is a
// version with its own isolation.
type before struct {
	ours
	containers onProcess
}

func newBefore(o ours) *before {
	o.as = "before"
	return &before{o, onProcess{&o, "auto"}}
}

func (b *before) describeSettings() string {
	return "an earlier version, as ours is run; with containers --provider=process, isolation: auto, which isolated them by itself"
}

func (b *before) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	if s.Runtimes {
		return b.containers.start(ctx, m, s, prefix)
	}
	return b.ours.start(ctx, m, s, prefix)
}
