// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// Program is a program that runs a node with one of its providers.
type Program struct {
	// Name is the name of the command. Default: the name under which it was called.
	Name string
	// Version, Commit and BuildTime are printed by the command version, and usually set by the linker. Default:
	// the build information of Go.
	Version, Commit, BuildTime string
	// GVisor is the version of gVisor's runsc in the release of the program, printed by the command version.
	// Empty: none.
	GVisor string
	// Providers are the providers from which users can choose. At least one is required.
	Providers []Provider
	// Commands are further commands of the program, of the program in addition to its own. They also accept the flags of nodes.
	Commands []*cobra.Command
}

// Main runs a program with the given providers; see Program.Main.
func Main(providers ...Provider) { Program{Providers: providers}.Main() }

// Main runs the program with the arguments and the environment of the process, and ends the process: with 0, or
// with 1 and an error on standard error. The first SIGINT or SIGTERM drains the node if --drain-on-exit is set
// and stops it within five seconds; the second one stops it at once. SIGHUP, which a closed terminal sends, has
// the same effect, unless the process was started to ignore it, as nohup does.
func (p Program) Main() {
	tuneHeap()
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	// After the first signal, a signal has its default effect.
	context.AfterFunc(ctx, stop)
	os.Exit(p.execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// stopSignals returns the signals that stop the program gracefully.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// execute returns the exit code.
func (p Program) execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := p.Command()
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	args, err := joinBooleans(cmd.PersistentFlags(), args)
	if err == nil {
		cmd.SetArgs(args)
		err = cmd.ExecuteContext(ctx)
	}
	var code exitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &code):
		code.code = 1
		fallthrough
	case code.error != nil:
		fmt.Fprintf(stderr, "%s: %v\n", cmd.Name(), err)
	}
	return code.code
}

// exitError ends the program with the exit code code.
type exitError struct {
	code  int
	error // nil: the message was already printed
}

// Error describes the failure.
func (e exitError) Error() string {
	if e.error == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.error.Error()
}

func (p Program) name() string {
	if p.Name != "" {
		return p.Name
	}
	return filepath.Base(os.Args[0])
}
