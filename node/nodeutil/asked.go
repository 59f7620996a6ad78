// SPDX-License-Identifier: Apache-2.0

package nodeutil

import "context"

// asked is the node of a request to the server of many nodes. It is a node name, whose permissions are then checked, or "" for all nodes if
// the node is unknown. It is determined once, before the request is authorized, so that the authorized node and the answering node are the
// same.
type asked string

type askedKey struct{}

func withAsked(ctx context.Context, a asked) context.Context {
	return context.WithValue(ctx, askedKey{}, a)
}

func askedOf(ctx context.Context) (a asked, ok bool) {
	a, ok = ctx.Value(askedKey{}).(asked)
	return a, ok
}
