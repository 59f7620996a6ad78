// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oomscore"
)

// patience is the timeout for a runtime to report its version, or to remove a container.
const patience = 30 * time.Second

// safeSince are the oldest versions of runtimes that pass the escape tests of the process provider. runc is
// missing, because distributions fix it without a new version. Older versions of crun accept a working directory
// outside of the container.
var safeSince = map[string]*utilversion.Version{"crun": utilversion.MustParseGeneric("1.14.1")}

// Find returns the path and the version of a program. It uses path, or searches PATH for name if path is empty.
// hint tells the user how to install the program. Find returns an error for an unsafe version.
func Find(ctx context.Context, name, path, hint string) (program, version string, err error) {
	if path == "" {
		if program, err = exec.LookPath(name); err != nil {
			return "", "", fmt.Errorf("the runtime %s is not on PATH (%s); %s, or set runtimePath: %w", name, os.Getenv("PATH"), hint, err)
		}
	} else if program, err = exec.LookPath(path); err != nil {
		return "", "", fmt.Errorf("runtimePath: %w", err)
	}
	if program, err = filepath.Abs(program); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out strings.Builder
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Stdout = &out
	if err := oomscore.Run(cmd); err != nil {
		return "", "", fmt.Errorf("ask %s for its version: %w", program, err)
	}
	version, _, _ = strings.Cut(strings.TrimSpace(out.String()), "\n")
	return program, version, checkVersion(program, version)
}

// checkVersion returns an error for an unsafe version. It uses the name in the version text, because the file
// name may belong to another program.
func checkVersion(program, version string) error {
	name, number, _ := strings.Cut(version, " version ")
	least := safeSince[name]
	if least == nil {
		return nil
	}
	number, _, _ = strings.Cut(number, " ")
	got, err := utilversion.ParseGeneric(number)
	if err != nil {
		return fmt.Errorf("the version of %s, which says %q: %w", program, version, err)
	}
	if got.LessThan(least) {
		return fmt.Errorf("%s is %s %s, in which a container can escape by its working directory; use %s or newer, or set isolation to gvisor or runc", program, name, number, least)
	}
	return nil
}

// Run runs the command without streams, and waits for its end.
func (c Call) Run(ctx context.Context) error {
	_, err := c.Output(ctx)
	return err
}

// Output runs the command, waits for its end, and returns its output.
func (c Call) Output(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdout = &out
	err := oomscore.Run(cmd)
	var ended *exec.ExitError
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(c.Argv[0]), c.Argv[len(c.Argv)-1], ctx.Err())
	case errors.As(err, &ended):
		return nil, c.Failed(ended.Error())
	}
	return nil, err
}
