// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
)

// TestHangupStopsTheProgramInGoodOrder holds that SIGHUP stops the program gracefully, unless it was started to ignore the signal.
func TestHangupStopsTheProgramInGoodOrder(t *testing.T) {
	wanted := !signal.Ignored(syscall.SIGHUP)
	if got := slices.Contains(stopSignals(), os.Signal(syscall.SIGHUP)); got != wanted {
		t.Errorf("a hangup stops the program: %t, want %t", got, wanted)
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if slices.Contains(stopSignals(), os.Signal(syscall.SIGHUP)) {
		t.Error("a program that ignores a hangup is stopped by it")
	}
}
