// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// onCloud is this project's agent with the provider of a cloud, and the cloud's emulator. The usage of the emulator is not counted.
type onCloud struct {
	*ours
	emulator string // the program
	service  string // the name of the provider and of the emulator
	push     bool   // the service reports changes by a queue
}

// pushed is the suffix of the name of an agent with pushed changes.
const pushed = "-push"

// newOnCloud returns the agent with the provider of that name. The emulator has the same name.
func newOnCloud(ctx context.Context, o *ours, cfg config, name string) (agent, error) {
	o.as = name
	emulator, err := buildEmulator(ctx, cfg)
	service, push := strings.CutSuffix(name, pushed)
	return onCloud{o, emulator, service, push}, err
}

func (a onCloud) describeSettings() string {
	if a.push {
		return "the same, and a queue tells it of changes"
	}
	if a.service == "kip" {
		return "virtual-kubelet --provider=kip with 120 starts a minute, all else by default; the emulator in a process of its own, with the agents of all machines: containers start within 5 s"
	}
	return "virtual-kubelet --provider=" + a.service + ", all else by default; the emulator in a process of its own, which simulates the containers: they start within 5 s, and lists are 0.5 s late"
}

func (a onCloud) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	c, err := startEmulator(ctx, m, a.emulator, a.service, prefix)
	if err != nil {
		return nil, err
	}
	if err := a.setQueue(c.provider); err != nil {
		c.stop()
		return nil, err
	}
	node, err := a.startWith(ctx, m, s, prefix, []string{"--provider=" + a.service, "--provider-config=" + c.provider}, c.env...)
	if err != nil {
		c.stop()
		return nil, err
	}
	node.backend = c
	return node, nil
}

// setQueue takes the queue out of a configuration, unless it is to be used.
func (a onCloud) setQueue(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read what the emulator wrote: %w", err)
	}
	lines := strings.Split(string(text), "\n")
	without := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, "queue:") })
	switch {
	case a.push && len(lines) == len(without):
		return fmt.Errorf("%w: the emulator of %s has no queue", errCannot, a.service)
	case a.push:
		return nil
	}
	return writeConfig(file, strings.Join(without, "\n"))
}

// buildEmulator builds the program of the emulators, and returns its path.
func buildEmulator(ctx context.Context, cfg config) (string, error) {
	program, err := filepath.Abs(filepath.Join(cfg.bin, "emulate"))
	if err != nil {
		return "", err
	}
	printProgress("building the emulators of clouds")
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
	if c.program, err = startProgram("emulator of "+service, cmd, m.cfg.logs); err != nil {
		return nil, err
	}
	if err := c.awaitProvider(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// awaitProvider waits until the emulator has written the input of its provider. It does so once it listens.
func (c *cloud) awaitProvider(ctx context.Context) error {
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
			return c.program.endReason()
		default:
		}
		if err := waitFor(ctx, 50*time.Millisecond); err != nil {
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
