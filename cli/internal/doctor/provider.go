// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
)

// checkProvider makes the provider and asks whether its backend is healthy.
func checkProvider(ctx context.Context, e *exam) {
	if e.Provider == nil {
		e.skip("no provider is chosen")
		return
	}
	type answer struct {
		what     string
		err      error
		versions []string
		advice   []Advice
	}
	client := e.client
	if e.bootstrap {
		client = nil
	}
	answered := make(chan answer, 1)
	// A provider may ignore its context; the goroutine then ends with the process, which ends soon.
	go func() {
		p, err := e.Provider(ctx, client)
		switch {
		case err != nil:
			answered <- answer{what: "cannot be made", err: err}
		case p == nil: // the provider has no health check
			answered <- answer{}
		default:
			a := answer{what: "is not well", err: p.Ping(ctx)}
			if adviser, ok := p.(Adviser); ok {
				a.versions, a.advice = adviser.Advise(ctx)
			}
			answered <- a
		}
	}()
	select {
	case a := <-answered:
		e.report.Versions = a.versions
		for _, one := range a.advice {
			e.warn(one.Fix, "%s", one.Problem)
		}
		switch {
		case errors.Is(a.err, context.DeadlineExceeded):
			e.slow(a.err)
		case a.err != nil:
			e.found("see its configuration (--provider-config), the credentials for the backend and the way there", "the provider %s: %v", a.what, a.err)
		}
	case <-ctx.Done():
		e.slow(context.Cause(ctx))
	}
}

func (e *exam) slow(err error) {
	e.found("see that the backend runs and is reached from here (DNS, routes, firewalls)", "%v",
		fmt.Errorf("the provider did not answer within %s: %w", e.Timeout, err))
}
