// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// stopGrace is how long a connection outlives the context of a server that stops, so that the client still
// learns how its session ended. A SPDY client takes a connection that closes without a word for success.
const stopGrace = 500 * time.Millisecond

// cutAfter ends the connection after the context of its request. If the client has left, it does so at once. If
// the server stops, or the client violated the protocol, it does so if the session has not ended within
// stopGrace. ended is closed when the session has ended, and stop keeps the connection.
func (up *upgradeWriter) cutAfter(ctx context.Context, ended <-chan struct{}) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		if clientLeft(ctx) {
			up.end((*watchedConn).close)
			return
		}
		if !within(stopGrace, ended) { // otherwise serve closes the connection at its end, so that the client has time to read the outcome
			up.end((*watchedConn).abort)
		}
	})
}

// within waits at most d for the end, and reports whether it came.
func within(d time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// told returns the outcome for the client of a session whose provider returned ended: nil, an ExitError, or any
// other error.
func told(ctx context.Context, ended error) error {
	if why := refusalOf(ctx); why != nil {
		return fmt.Errorf("%w: %w", errCutShort, why)
	}
	if ended == nil && ctx.Err() != nil {
		ended = errCutShort
	}
	return exitError(unlessGone(ctx, ended))
}

// errCutShort is the outcome of a session whose provider returned nil after its context had ended. It is unknown
// whether the command has done its work. A client that is still connected when the server stops must not be told
// that it has.
var errCutShort = errors.New("the node ended the session")

// unlessGone hides an error from the library when the client has left: the client cannot read it, and the
// library would log every such end as an error. A client that is still connected gets the error, because no
// error means success.
func unlessGone(ctx context.Context, err error) error {
	if err == nil || !clientLeft(ctx) {
		return err
	}
	log.G(ctx).WithError(err).Debug("session ended because the client left")
	return nil
}

// exitError unwraps the exit error, because the library recognises only an unwrapped exit error. Exit code 0 is
// no error.
func exitError(err error) error {
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || !exit.Exited() {
		return err
	}
	if exit.ExitStatus() == 0 {
		return nil
	}
	return exit
}
