// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/pki"
)

// schedulerConfig is a file because flags cannot raise the request rate.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 5000, burst: 10000, contentType: application/vnd.kubernetes.protobuf}
leaderElection: {leaderElect: false}
`

// scheduler returns kube-scheduler. Its own HTTP server is off, and there is no leader election.
func scheduler(o Options) (func(context.Context) error, error) {
	kubeconfig := o.Dir.ComponentKubeconfig(pki.Scheduler)
	config := fmt.Sprintf(schedulerConfig, kubeconfig)
	if err := os.WriteFile(o.Dir.SchedulerConfig(), []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration of kube-scheduler: %w", err)
	}
	s := options.NewOptions()
	flags := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, set := range s.Flags.FlagSets {
		flags.AddFlagSet(set)
	}
	args := []string{
		"--config=" + o.Dir.SchedulerConfig(),
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--secure-port=0",
	}
	if err := flags.Parse(append(args, o.SchedulerArgs...)); err != nil {
		return nil, fmt.Errorf("parse flags of kube-scheduler: %w", err)
	}
	return func(ctx context.Context) error {
		name, err := cache.NewInformerName("kube-scheduler")
		if err != nil {
			return err
		}
		defer name.Release()
		s.InformerName = name
		completed, sched, err := app.Setup(ctx, s)
		if err != nil {
			return fmt.Errorf("set up: %w", err)
		}
		return app.Run(ctx, completed, sched)
	}, nil
}
