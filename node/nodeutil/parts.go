// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// parts run together: when one of them ends, the others end too.
type parts struct {
	parent context.Context // when it ends, all parts end
	ctx    context.Context // of the parts
	group  *errgroup.Group
}

func newParts(parent context.Context) *parts {
	group, ctx := errgroup.WithContext(parent)
	return &parts{parent: parent, ctx: ctx, group: group}
}

// start runs a part. The first part that ends early ends all others, with or without an error; later errors of other parts are ignored.
func (p *parts) start(what string, part func(context.Context) error) {
	p.group.Go(func() error { return p.run(what, part) })
}

// wait runs the last part in the goroutine of the caller, and returns when all parts have ended.
func (p *parts) wait(what string, part func(context.Context) error) error {
	err := p.run(what, part)
	p.group.Go(func() error { return err })
	return p.group.Wait()
}

func (p *parts) run(what string, part func(context.Context) error) error {
	switch err := part(p.ctx); {
	case p.parent.Err() != nil:
		return p.parent.Err()
	case p.ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("run %s: %w", what, err)
	default:
		return fmt.Errorf("run %s: it ended by itself", what)
	}
}
