// SPDX-License-Identifier: Apache-2.0

// Command azureaci runs provider aci and the virtual kubelet of the project azure-aci one after the other, each
// on the same emulator of ACI and the same cluster. It counts the requests of each agent to ACI for the life of
// a pod, and while nothing happens. It also asks each agent for the pods that it knows.
//
// Usage: azureaci -bin DIR [-pods 100] [-idle 2m] [-o FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// config has the values of the command line.
type config struct {
	bin, out     string
	pods         int
	settle, idle time.Duration
}

func main() {
	var c config
	flag.StringVar(&c.bin, "bin", "../bin", "directory of devcluster, virtual-kubelet and azure-aci/virtual-kubelet")
	flag.StringVar(&c.out, "o", "", "file for the report; default: standard output")
	flag.IntVar(&c.pods, "pods", 100, "pods at once")
	flag.DurationVar(&c.settle, "settle", 125*time.Second, "how long each agent runs before its first pod: provider aci asks once more for each pod until then")
	flag.DurationVar(&c.idle, "idle", 2*time.Minute, "how long to count while nothing happens")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runBench(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "azureaci:", err)
		os.Exit(1)
	}
}

func runBench(ctx context.Context, c config) error {
	bin, err := filepath.Abs(c.bin)
	if err != nil {
		return err
	}
	c.bin = bin
	dir, err := os.MkdirTemp("", "azureaci")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	control, err := startCluster(ctx, c.bin, dir)
	if err != nil {
		return err
	}
	defer control.stop()
	var figures []figure
	for _, a := range []agent{
		{title: "provider aci", node: "ours", command: ownCommand},
		// This agent reports the port of the environment to the API server, but listens at the default port,
		// which it sets up before.
		{title: "azure-aci v1.6.4", node: "peer", port: 10250, command: peerCommand},
	} {
		f, err := measureAgent(ctx, c, dir, control, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.title, err)
		}
		figures = append(figures, f)
	}
	text := formatReport(c, figures[0], figures[1])
	if c.out == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return errors.Join(os.WriteFile(c.out, []byte(text), 0o600), os.Chmod(c.out, 0o644)) //nolint:gosec // a report for everybody
}
