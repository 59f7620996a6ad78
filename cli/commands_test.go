// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestProgramHasItsOwnCommands holds that a program can have its own commands in addition to the usual commands.
func TestProgramHasItsOwnCommands(t *testing.T) {
	p := testProgram
	p.Commands = []*cobra.Command{{Use: "greet", RunE: func(cmd *cobra.Command, args []string) error {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "hello %v\n", args)
		return err
	}}}
	for range 2 { // a command can be executed twice
		var out, errs bytes.Buffer
		if code := p.execute(t.Context(), []string{"greet", "you"}, &out, &errs); code != 0 || out.String() != "hello [you]\n" {
			t.Errorf("greet: got %d, %q, %q", code, out.String(), errs.String())
		}
		out.Reset()
		if code := p.execute(t.Context(), []string{"version"}, &out, &errs); code != 0 || !strings.Contains(out.String(), "v9\n") {
			t.Errorf("version: got %d, %q, %q", code, out.String(), errs.String())
		}
	}
}
