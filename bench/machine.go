// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// machine has the shared parts of all agents: the control plane, the credentials and the log of requests.
type machine struct {
	*cluster
	cfg        config
	kubeconfig string // of every agent
	audit      *audit

	// nil or empty except in scenarios with containers
	accounts   *accounts
	containers containers
	images     string // folder with the image of the pods
}

// startMachine starts a control plane with its files below base, with further flags of devcluster.
func startMachine(ctx context.Context, cfg config, base string, flags ...string) (*machine, error) {
	log, auditFlags, err := prepareAudit(base)
	if err != nil {
		return nil, err
	}
	for _, flag := range auditFlags {
		flags = append(flags, "--apiserver-arg="+flag)
	}
	c, err := startCluster(ctx, cfg, base, flags...)
	if err != nil {
		return nil, err
	}
	m := &machine{cluster: c, cfg: cfg, audit: log}
	m.kubeconfig, err = makeIdentity(ctx, c.client, filepath.Join(base, clusterName, "kubeconfig"), base)
	if err != nil {
		c.stop()
		return nil, err
	}
	return m, nil
}

// withMachine runs do with a machine for single use.
func withMachine(ctx context.Context, cfg config, do func(*machine) error) error {
	base, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(base)
	m, err := startMachine(ctx, cfg, base)
	if err != nil {
		return err
	}
	defer m.stop()
	return do(m)
}
