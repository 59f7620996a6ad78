// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// nopTracer records nothing, but keeps log fields, which are needed without a tracer.
type nopTracer struct{}

func (nopTracer) StartSpan(ctx context.Context, _ string) (context.Context, Span) {
	return ctx, nopSpan{}
}

type nopSpan struct{}

func (nopSpan) End()               {}
func (nopSpan) SetStatus(error)    {}
func (nopSpan) Logger() log.Logger { return nil }

func (nopSpan) WithField(ctx context.Context, key string, value any) context.Context {
	return log.WithLogger(ctx, log.G(ctx).WithField(key, value))
}

func (nopSpan) WithFields(ctx context.Context, fields log.Fields) context.Context {
	return log.WithLogger(ctx, log.G(ctx).WithFields(fields))
}
