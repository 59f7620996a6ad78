// SPDX-License-Identifier: Apache-2.0

package api

import "context"

// Caller is the user who sends a request, as the authentication has found out. For a
// request that came through the API server it is the API server.
type Caller struct {
	Name   string
	Groups []string
}

type callerKey struct{}

// WithCaller returns a context for a request of who. Package nodeutil does it for
// requests that it lets through; a program that authenticates in another way should, so
// that records and limits of streams tell users apart.
func WithCaller(ctx context.Context, who Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// CallerFrom returns who sends the request that ctx belongs to. Providers see it in the context of
// their calls. ok is false if nobody has said.
func CallerFrom(ctx context.Context) (who Caller, ok bool) {
	who, ok = ctx.Value(callerKey{}).(Caller)
	return who, ok
}
