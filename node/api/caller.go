// SPDX-License-Identifier: Apache-2.0

package api

import "context"

// Caller is the authenticated user of a request. For a request through the API server, the caller is the API
// server.
type Caller struct {
	Name   string
	Groups []string
}

type callerKey struct{}

// WithCaller returns a context for a request of the caller. Package nodeutil calls it for the requests that it
// lets through. A program that authenticates in another way should call it too, so that stream records and
// limits distinguish users.
func WithCaller(ctx context.Context, who Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// CallerFrom returns the caller from the context of a request. Providers find the caller in the context of their calls. ok is false if no
// caller was set.
func CallerFrom(ctx context.Context) (who Caller, ok bool) {
	who, ok = ctx.Value(callerKey{}).(Caller)
	return who, ok
}
