// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// onCloud is this project's agent with the provider of a cloud, and the emulator of that. The emulator is not counted with it.
type onCloud struct {
	*ours
	emulator string // the program
}

// newOnCloud returns the agent with the provider of that name, which is also that of the emulator.
func newOnCloud(ctx context.Context, o *ours, cfg config, name string) (agent, error) {
	o.as = name
	emulator, err := buildEmulator(ctx, cfg)
	return onCloud{o, emulator}, err
}

func (a onCloud) settings() string {
	return "virtual-kubelet --provider=" + a.as + ", all else by default; the emulator in a process of its own, which simulates the containers: they start within 5 s, and lists are 0.5 s late"
}

func (a onCloud) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	c, err := startEmulator(ctx, m, a.emulator, a.as, prefix)
	if err != nil {
		return nil, err
	}
	node, err := a.startWith(ctx, m, s, prefix, []string{"--provider=" + a.as, "--provider-config=" + c.provider}, c.env...)
	if err != nil {
		c.stop()
		return nil, err
	}
	node.backend = c
	return node, nil
}

// buildEmulator builds the program of the emulators, and returns where it is.
func buildEmulator(ctx context.Context, cfg config) (string, error) {
	program, err := filepath.Abs(filepath.Join(cfg.bin, "emulate"))
	if err != nil {
		return "", err
	}
	progress("building the emulators of clouds")
	build := exec.CommandContext(ctx, "go", "build", "-C", "../providers", "-trimpath", "-o", program, "./internal/emulate")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the emulators of clouds: %w: %s", err, out)
	}
	return program, nil
}

// startEmulator starts the emulator of a service, and returns when it listens.
func startEmulator(ctx context.Context, m *machine, program, service, prefix string) (*cloud, error) {
	c := &cloud{dir: filepath.Join(m.base, "clouds", prefix)}
	c.provider = filepath.Join(c.dir, "provider.yaml")
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	cmd := exec.Command(program, "-service", service, "-dir", c.dir, "-simulate") //nolint:noctx // it is ended by stop, gently
	var err error
	if c.commands, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	if c.program, err = start("emulator of "+service, cmd, m.cfg.logs); err != nil {
		return nil, err
	}
	if err := c.await(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// await waits until the emulator has written what its provider needs, which it does once it listens.
func (c *cloud) await(ctx context.Context) error {
	for {
		_, err := os.Stat(c.provider)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("wait for the emulator: %w", err)
		}
		select {
		case <-c.program.done:
			return c.program.lost()
		default:
		}
		if err := idle(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the emulator: %w: %s", err, c.program.said)
		}
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "provider.env"))
	if err != nil {
		return fmt.Errorf("read what the emulator wrote: %w", err)
	}
	c.env = strings.Fields(string(text))
	return nil
}
