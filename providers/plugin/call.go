// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// boundContext returns a context that ends with ctx or with the session.
func (s *session) boundContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(lostError{context.Cause(s.ctx)}) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// lostError is the error of a call whose session ended. It has no kind, because the outcome of the call is
// unknown.
type lostError struct{ why error }

func (e lostError) Error() string {
	return "the plugin was lost before it answered: " + reasonText(e.why)
}

// callPlugin calls the plugin once, and sets the kind of the error. For a not-found error, complete reports
// whether the plugin knew all pods.
func (p *plugin) callPlugin(ctx context.Context, f func(context.Context, *session, grpc.CallOption) error) (complete bool, err error) {
	s, err := p.connectedSession()
	if err != nil {
		return false, err
	}
	ctx, cancel := s.boundContext(ctx)
	defer cancel()
	var trailer metadata.MD
	return p.decodeError(ctx, s, f(ctx, s, grpc.Trailer(&trailer)), trailer)
}

// decodeError sets the kind of the error of a call in the session s.
func (p *plugin) decodeError(ctx context.Context, s *session, err error, trailer metadata.MD) (complete bool, kind error) {
	if err == nil {
		return false, nil
	}
	if s.ctx.Err() != nil && !errdefs.IsNotFound(err) {
		return false, lostError{context.Cause(s.ctx)}
	}
	if wire.Unimplemented(err) {
		return false, fmt.Errorf("plugin %s declares a method that it lacks: %w", p.agreed.name, err)
	}
	kind, complete = wire.Decode(ctx, err, trailer)
	return complete, kind
}

// requireAbility returns an error if the plugin has not declared the ability.
func (p *plugin) requireAbility(a rpc.Ability, what string) error {
	if p.agreed.hasAbility(a) {
		return nil
	}
	return errdefs.InvalidInputf("plugin %s has no %s", p.agreed.name, what)
}

// doubtWindow is the time after a true AnswersForAllPods in which the node may combine it with an answer. It is
// longer than any call takes.
const doubtWindow = time.Minute

// errIncomplete is the error for an incomplete answer within doubtWindow: the node could take it for a complete
// one.
var errIncomplete = errors.New("the plugin does not know all its pods any more, so a pod that it does not have may exist")

// complete records whether the answers of the plugin cover all its pods. The node may combine an answer with an
// earlier AnswersForAllPods, so an incomplete answer is an error within doubtWindow.
type complete struct {
	mu      sync.Mutex
	is      bool      // guarded by mu
	vouched time.Time // guarded by mu: when lastAnswer last returned true
}

func (c *complete) set(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is = is
}

// lastAnswer returns the last recorded value, and records the time if it is true.
func (c *complete) lastAnswer(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is {
		c.vouched = now
	}
	return c.is
}

// checkAnswer records whether an answer is complete. It returns errIncomplete within doubtWindow.
func (c *complete) checkAnswer(is bool, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is = is
	if !is && !c.vouched.IsZero() && now.Sub(c.vouched) < doubtWindow {
		return errIncomplete
	}
	return nil
}
