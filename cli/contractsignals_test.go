// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The first call of signal.Notify starts a goroutine of package os/signal that never ends, which must not be in a bubble of
// testing/synctest.
func init() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	signal.Stop(c)
}

// hangup is an input whose terminal closes while the command waits for a reply.
type hangup struct{ t *testing.T }

func (h hangup) Read([]byte) (int, error) {
	self, err := os.FindProcess(os.Getpid())
	if err = errors.Join(err, self.Signal(syscall.SIGHUP)); err != nil {
		h.t.Error(err)
	}
	<-h.t.Context().Done() // like a read of a terminal, it does not end
	return 0, errors.New("closed")
}

// TestContractOfATerminalThatIsClosed holds that a closed terminal interrupts the run.
func TestContractOfATerminalThatIsClosed(t *testing.T) {
	if runtime.GOOS == "windows" || signal.Ignored(syscall.SIGHUP) {
		t.Skip("there is no SIGHUP")
	}
	got := runContract(t.Context(), t, newAccount(t), hangup{t}, "--provider=cloud", "--run=^creation/runs$")
	if got.code != 2 || !strings.Contains(got.err, "interrupted: nothing was made") {
		t.Errorf("it ends with %d %q, want 2 and that it was interrupted", got.code, got.err)
	}
}
