// SPDX-License-Identifier: Apache-2.0

package nodeutil

import "context"

// asked is which node a request to the server of many nodes is for: its name, which permissions are asked for, or "" for all nodes,
// where it cannot be told. It is decided once, before the request is authorized, so that no other node can answer.
type asked string

type askedKey struct{}

func withAsked(ctx context.Context, a asked) context.Context {
	return context.WithValue(ctx, askedKey{}, a)
}

func askedOf(ctx context.Context) (a asked, ok bool) {
	a, ok = ctx.Value(askedKey{}).(asked)
	return a, ok
}
