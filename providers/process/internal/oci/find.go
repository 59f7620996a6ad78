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
)

// patience is how long a runtime may take for a word about itself, or to remove a container.
const patience = 30 * time.Second

// Find returns the path of the program of that name on PATH, or of the one at path if that is not empty, and its version. hint says how a user
// gets one.
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
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("ask %s for its version: %w", program, err)
	}
	version, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return program, version, nil
}

// Run makes a call that has no streams, and returns when the program has ended.
func (c Call) Run(ctx context.Context) error {
	_, err := c.Output(ctx)
	return err
}

// Output makes a call, and returns what the program has written when it has ended.
func (c Call) Output(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdout = &out
	err := cmd.Run()
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
