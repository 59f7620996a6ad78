// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"testing"
	"time"
)

func TestCallerThatGivesUpEndsNoNetworkProcess(t *testing.T) {
	ctx, cancel := context.WithDeadline(neverDone{t.Context()}, time.Now().Add(-time.Second))
	defer cancel()
	if !gaveUp(neverDone{ctx}) {
		t.Error("a deadline that has passed is none")
	}
	if gaveUp(t.Context()) {
		t.Error("a caller that waits has given up")
	}
}

// neverDone is a context that has not seen its deadline yet.
type neverDone struct{ context.Context }

func (neverDone) Err() error { return nil }
