// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// pollPeriod is the interval of reads of an object without permission to watch it, as in a kubelet without watches.
	pollPeriod = time.Minute
	// firstPoll is the delay of the first retry for a missing or unreadable object, because a pod may wait for it. Later delays grow.
	firstPoll = time.Second
)

// pollObject reads the object by name periodically, until the entry is dropped, the object is known to be immutable, or Run ends. It is for an
// identity with permission to get, but not to list or watch.
func (e *entry) pollObject(ctx context.Context) {
	pause := firstPoll
	for ctx.Err() == nil {
		next := min(pause, pollPeriod)
		if e.readAgain(ctx) {
			next, pause = pollPeriod, firstPoll
		} else {
			pause = min(2*pause, pollPeriod)
		}
		timer := time.NewTimer(next + rand.N(next/10)) // not all objects together
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// readAgain reads the object once, and reports whether it exists.
func (e *entry) readAgain(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	k := e.key
	o, err := k.kind.get(bounded, e.store.client, k.namespace, k.name)
	switch {
	case err == nil:
		e.set(o)
		return true
	case apierrors.IsNotFound(err):
		e.set(nil)
	case ctx.Err() == nil && !e.setError(err):
		log.G(ctx).WithError(err).WithField("object", k.String()).Warn("object cannot be read again, it is served as it was last seen")
		return true // not earlier than usual, because no caller waits for the answer
	}
	return false
}
