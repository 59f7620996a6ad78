// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Run polls the service until ctx ends. The first round starts at once.
func (c *Cache[T]) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next, failed := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
			// A failing service is not polled sooner, and many creates must not delay the round.
			if soon := time.Now().Add(c.config.Soon); failed == 0 && next.After(soon) {
				next = soon
				timer.Reset(c.config.Soon)
			}
			continue
		case <-timer.C:
		}
		err := c.round(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := c.interval()
		if err != nil {
			if failed++; failed == 1 {
				log.G(ctx).WithError(err).Warn("The service does not tell the states of pods; they stay as they were seen last")
			}
			wait = min(c.config.Busy<<min(failed-1, 8), max(c.config.Slowest, c.config.Rest)) // short at first, because most errors are temporary
			if after, says := errdefs.RetryAfterOf(err); says {
				wait = max(wait, after)
			}
		} else if failed > 0 {
			failed = 0
			log.G(ctx).Info("The service tells the states of pods again")
		}
		next = time.Now().Add(wait)
		timer.Reset(wait)
	}
}

// interval is the time until the next round.
func (c *Cache[T]) interval() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.pods {
		if e.stopping || e.pod.Status.Phase == corev1.PodPending || e.pod.Status.Phase == "" {
			return c.config.Busy
		}
	}
	if len(c.pods) == 0 {
		return c.config.Idle
	}
	return c.config.Rest
}

// round polls the service once, and records whether it answered.
func (c *Cache[T]) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	asked := time.Now()
	c.begin(asked)
	since, list := c.due(asked)
	var instances []T
	var err error
	var unanswered Unanswered
	if list {
		instances, err = c.config.List(ctx)
		switch {
		case errors.Is(err, Partial):
			list, err = false, nil
		case errors.As(err, &unanswered):
			err = nil
		}
	} else {
		instances, err = c.config.Changed(ctx, since)
	}
	c.note(asked, err)
	if err != nil {
		return err
	}
	c.apply(ctx, instances, asked, list, unanswered)
	return nil
}
