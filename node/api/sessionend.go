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

// stopGrace is the time that a connection outlives the context of a stopping server, so that the client still receives the outcome of its
// session. A SPDY client treats a connection that closes without an outcome as success.
const stopGrace = 500 * time.Millisecond

// cutAfter closes the connection after the context of its request has ended: at once if the client has left, or after stopGrace if the
// server stops or the client violated the protocol, and the session has not ended by then. ended is closed when the session has ended; stop
// cancels cutAfter.
func (up *upgradeWriter) cutAfter(ctx context.Context, ended <-chan struct{}) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		if clientLeft(ctx) {
			up.end((*watchedConn).close)
			return
		}
		if !within(stopGrace, ended) { // if the session ended in time, serve closes the connection, so that the client has time to read the outcome
			up.end((*watchedConn).abort)
		}
	})
}

// within waits at most d for ended to close, and reports whether it did.
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

// told returns the outcome to send to the client for a session whose provider returned ended: nil, an ExitError, or any other error.
func told(ctx context.Context, ended error) error {
	if why := refusalOf(ctx); why != nil {
		return fmt.Errorf("%w: %w", errCutShort, why)
	}
	if ended == nil && ctx.Err() != nil {
		ended = errCutShort
	}
	return exitError(unlessGone(ctx, ended))
}

// errCutShort is the outcome of a session whose provider returned nil after its context had ended. It is unknown whether the command has
// completed, so a client that is still connected must not receive success.
var errCutShort = errors.New("the node ended the session")

// unlessGone hides an error from the library if the client has disconnected: the client cannot read the error, and the library would log
// it. A connected client gets the error, because the library reports nil as success.
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
