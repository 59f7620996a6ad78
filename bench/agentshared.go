// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

// sharers is the number of processes with shared nodes.
const sharers = 3

// shared is this project's agent in several processes with shared nodes. The usage of all of them counts.
type shared struct{ *ours }

func (shared) agentName() string { return "shared" }

func (a shared) describeSettings() string {
	return fmt.Sprintf("%d processes as ours, with --share-nodes; CPU and memory are of all", sharers)
}

func (a shared) start(ctx context.Context, m *machine, s scenario, prefix string) (all *process, err error) {
	args, err := a.providerArgs(m, s, prefix)
	if err != nil {
		return nil, err
	}
	for range sharers {
		p, err := a.startWith(ctx, m, s, prefix, append(args, "--share-nodes="+prefix))
		if err != nil {
			if all != nil {
				all.stop()
			}
			return nil, err
		}
		all, p.beside = p, all
	}
	return all, nil
}
