// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// start opens the first session and records the declarations of the plugin.
func (p *plugin) start(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, p.config.StartTimeout.Duration)
	defer cancel()
	s, err := p.connectSession(wait)
	if err != nil {
		return fmt.Errorf("plugin at %s, not connected within startTimeout (%v): %w", p.config.Endpoint, p.config.StartTimeout.Duration, err)
	}
	if p.agreed, err = readHandshake(s.hello); err != nil {
		s.close(err)
		return fmt.Errorf("plugin at %s: %w", p.config.Endpoint, err)
	}
	p.set(s)
	context.AfterFunc(ctx, func() { s.close(context.Cause(ctx)) })
	return nil
}

// connectSession retries until there is a session or ctx ends. The error is from the last complete attempt.
func (p *plugin) connectSession(ctx context.Context) (*session, error) {
	for pause := p.retry; ; pause = min(2*pause, lastRetry) {
		began := time.Now()
		s, err := p.dialPlugin(ctx)
		if err == nil {
			return s, nil
		}
		cut := errors.Is(err, errNoAnswer) && time.Since(began) < p.patience // the end of ctx interrupted the attempt: keep the earlier reason
		if ctx.Err() == nil && !cut || p.downReason() == nil {
			p.recordReason(err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // jitter needs no secure randomness
		select {
		case <-ctx.Done():
			timer.Stop()
			if last := p.downReason(); last != nil {
				err = last
			}
			return nil, err
		case <-timer.C:
		}
	}
}

// RunInBackground keeps the plugin connected until ctx ends.
func (p *plugin) RunInBackground(ctx context.Context) error {
	defer func() { p.loseSession(ctx, p.currentSession(), context.Cause(ctx)) }()
	for ctx.Err() == nil {
		s := p.currentSession()
		if s == nil {
			var err error
			if s, err = p.connectSession(ctx); err != nil {
				return nil //nolint:nilerr // ctx has ended
			}
		}
		p.loseSession(ctx, s, p.run(ctx, s))
	}
	return nil
}

// run serves the session s until it ends, and returns the reason.
func (p *plugin) run(parent context.Context, s *session) error {
	ctx, cancel := context.WithCancelCause(parent)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	defer stop()
	try := func(f func(context.Context, *session) error) {
		wg.Go(func() {
			if err := f(ctx, s); err != nil {
				cancel(err)
			}
		})
	}
	now, err := readHandshake(s.hello)
	if err == nil {
		err = p.agreed.keptBy(now)
	}
	if err != nil {
		return err
	}
	try(func(ctx context.Context, s *session) error { return s.awaitBreak(ctx) })
	try(p.keepAsking)
	if p.agreed.hasAbility(rpc.Ability_ABILITY_LOOKUPS) {
		try(p.answerLookups)
	}
	if p.agreed.hasAbility(rpc.Ability_ABILITY_NODE_REPORTS) {
		try(p.watchNode)
	}
	ready := func() error {
		if err := p.restorePods(ctx, s); err != nil {
			return err
		}
		p.set(s)
		return nil
	}
	if p.agreed.hasAbility(rpc.Ability_ABILITY_REPORTS) {
		try(func(ctx context.Context, s *session) error { return p.watchPods(ctx, s, ready) })
	} else {
		try(func(context.Context, *session) error { return ready() })
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// keepAsking calls Alive regularly, to detect a frozen plugin.
func (p *plugin) keepAsking(ctx context.Context, s *session) error {
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, p.patience)
		answer, err := s.Alive(call, &rpc.AliveRequest{})
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && errors.Is(call.Err(), context.DeadlineExceeded):
			return fmt.Errorf("the plugin has not answered for %v: it is frozen or too busy", p.patience)
		case err != nil:
			kind, _ := wire.Decode(ctx, err, nil)
			return fmt.Errorf("ask the plugin whether it is alive: %w", kind)
		}
		p.complete.set(answer.GetComplete())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func (p *plugin) set(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session, p.instance, p.down = s, s.hello.GetInstance(), nil
}

// loseSession ends the session s, and records the reason.
func (p *plugin) loseSession(ctx context.Context, s *session, why error) {
	if s == nil {
		return
	}
	s.close(why)
	p.complete.set(false)
	p.mu.Lock()
	if p.session == s {
		p.session, p.since = nil, time.Now()
	}
	p.down = why
	p.mu.Unlock()
	if ctx.Err() == nil {
		log.G(ctx).WithError(why).WithField("endpoint", p.config.Endpoint).Warn("the plugin is not connected: its pods stay as they are until it is back")
	}
}

// recordReason records why there is no session.
func (p *plugin) recordReason(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = why
}

func (p *plugin) downReason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

func (p *plugin) currentSession() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// connectedSession returns the session, or an error with the reason why there is none.
func (p *plugin) connectedSession() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		return p.session, nil
	}
	return nil, fmt.Errorf("plugin %s at %s is not connected since %s: %s", p.agreed.name, p.config.Endpoint, p.since.UTC().Format(time.RFC3339), reasonText(p.down))
}

// reasonText returns the text of err as an error without kinds, because a connection error says nothing about
// pods.
func reasonText(err error) string {
	if err == nil {
		return "it was stopped"
	}
	return err.Error()
}
