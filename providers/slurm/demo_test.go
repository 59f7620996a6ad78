// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// TestDemo is run by hack/slurm-demo.sh: it runs a private Slurm until it is interrupted. It writes the
// configuration of the provider, and a link for the commands of Slurm.
func TestDemo(t *testing.T) {
	path, conf := os.Getenv("VK_SLURM_DEMO"), os.Getenv("VK_SLURM_DEMO_CONF")
	if path == "" {
		t.Skip("this is no test: run hack/slurm-demo.sh")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := slurmtest.Start(t, slurmtest.Options{})
	if err := os.Symlink(c.Conf, conf); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nclusterName: demo\nsharedDir: %s\nslurmConf: %s\n", APIVersion, Kind, c.Shared, c.Conf)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}
