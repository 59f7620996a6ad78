// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/cli/internal/doctor"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// stopTimeout bounds the time that the program takes to stop.
const stopTimeout = 5 * time.Second

// run runs the node until ctx ends, which is no error. It drains the node if the settings ask for it, and
// returns at most stopTimeout later.
func (p Program) run(ctx context.Context, r *resolved, stderr io.Writer) error {
	provider, err := choose(p.Providers, r.Provider)
	if err != nil {
		return err
	}
	if err := r.startLogging(stderr); err != nil {
		return err
	}
	logger := log.L.WithField("provider", provider.Name)
	ctx = log.WithLogger(ctx, logger)
	for _, warning := range r.warningsFor(provider.Name) {
		logger.Warn(warning)
	}
	if r.NodeIP == "" && !r.DisableKubeletAPI {
		logger.Warn("--node-ip is not set: the API server may not find the node for kubectl logs and exec")
	}
	if r.NoAuthentication {
		logger.Warn("The kubelet API is served without authentication: everybody who reaches the port can run commands in the pods of this node")
	}
	endTraces, err := r.startTracing(ctx, provider.Name, p.version())
	if err != nil {
		return fmt.Errorf("start tracing: %w", err)
	}

	build := p.build()
	defer buildInfoGauge.Track(func() float64 { return 1 }, build.Version, build.Commit, build.Go, provider.Name)()
	nodeCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	made, done := make(chan drainer, 1), make(chan error, 1)
	go func() { done <- r.runNode(nodeCtx, provider, p, made) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		logger.Info("Stopping")
		r.drain(nodeCtx, made)
		end()
		err = waitToStop(done)
	}
	// Send the last spans within the remaining time.
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := endTraces(endCtx); err != nil {
		logger.WithError(err).Warn("The last traces were not sent")
	}
	return err
}

// logStart logs the start of the program in one line.
func (o *options) logStart(ctx context.Context, build buildInfo) {
	address := net.JoinHostPort(o.NodeIP, strconv.Itoa(o.Port))
	if o.DisableKubeletAPI {
		address = "none"
	}
	log.G(ctx).WithFields(log.Fields{
		"version": build.Version, "commit": build.Commit, "identity": o.identity(), "node": o.name(), "address": address,
	}).Info("Starting")
}

// waitToStop waits for the node, for a limited time.
func waitToStop(done <-chan error) error {
	timer := time.NewTimer(stopTimeout - time.Second)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("stopped with work left: the node did not end within %s", stopTimeout-time.Second)
	}
}

// runNode creates the node or the fleet, sends it to made, and runs it with its additional servers.
func (o *options) runNode(ctx context.Context, p Provider, program Program, made chan<- drainer) error {
	if err := o.checkIdentity(); err != nil {
		return err
	}
	n, err := o.newDaemon(ctx, p, program.kubeletVersion())
	if errors.Is(err, rest.ErrNotInCluster) {
		problem, fix := doctor.NoKubeconfig(o.Kubeconfig)
		return fmt.Errorf("%s: %s", problem, fix)
	}
	if err != nil {
		return err
	}
	o.logStart(ctx, program.build())
	made <- n
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.Run(ctx) })
	group.Go(func() error {
		err := n.WaitReady(ctx, o.StartupTimeout)
		switch {
		case err == nil:
			log.G(ctx).WithField("node", o.name()).Info("Node is ready")
			return nil
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("node %s was not ready within --startup-timeout %s", o.name(), o.StartupTimeout)
		}
		return nil // Run returns the reason
	})
	group.Go(func() error { return o.watchCertificates(ctx) })
	if o.MetricsAddr != "" {
		group.Go(func() error { return o.serveMetrics(ctx) })
	}
	if o.DebugAddr != "" {
		group.Go(func() error { return serveDebug(ctx, o.DebugAddr, n.DebugHandler()) })
	}
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
