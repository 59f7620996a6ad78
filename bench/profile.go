// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// profileVariable has the directory for the profiles of a program from buildProfiled.
const profileVariable = "BENCH_PROFILE"

// buildProfiled builds virtual-kubelet with a profiler, which the released program does not have: the file is
// laid over the command's folder for this build.
func buildProfiled(ctx context.Context, cfg config) (string, error) {
	command, err := filepath.Abs("../cmd/virtual-kubelet")
	if err != nil {
		return "", err
	}
	profiler, err := filepath.Abs("testdata/profiler.go")
	if err != nil {
		return "", err
	}
	program, err := filepath.Abs(filepath.Join(cfg.bin, "virtual-kubelet-profiled"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cfg.profile, 0o755); err != nil {
		return "", fmt.Errorf("make folder for profiles: %w", err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(command, "profiler.go"): profiler}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(cfg.profile, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	list, err = filepath.Abs(list)
	if err != nil {
		return "", err
	}
	printProgress("building virtual-kubelet with a profiler")
	build := exec.CommandContext(ctx, "go", "build", "-C", command, "-trimpath", "-tags", "grpcnotrace", "-overlay", list, "-o", program, ".")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build virtual-kubelet with a profiler: %w: %s", err, out)
	}
	return program, nil
}

// The signals ask a program from buildProfiled for its profiles: of the heap, or of CPU and allocations.
const (
	heapProfile = syscall.SIGUSR2
	restProfile = syscall.SIGUSR1
)

// writeProfiles sends the signal and waits for the profiles. It does nothing for another program.
func writeProfiles(ctx context.Context, p *process, signal syscall.Signal) error {
	var path string
	for _, variable := range p.cmd.Env {
		if value, ok := strings.CutPrefix(variable, profileVariable+"="); ok {
			path = value
		}
	}
	if path == "" {
		return nil
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("ask %s for its profiles: %w", p.name, err)
	}
	for {
		_, err := os.Stat(path + ".done")
		if err == nil {
			return os.Remove(path + ".done")
		}
		if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("wait for profiles: %w", err)
		}
		if err := waitFor(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for profiles: %w", err)
		}
	}
}
