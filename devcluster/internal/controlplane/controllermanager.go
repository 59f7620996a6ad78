// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/pki"
)

// controllerManager returns kube-controller-manager. Its own HTTP server is off, and there is no leader
// election.
func controllerManager(o Options) (func(context.Context) error, error) {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("make options of kube-controller-manager: %w", err)
	}
	all, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	named := s.Flags(all, disabled, aliases)
	s.ParsedFlags = &named
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, set := range named.FlagSets {
		flags.AddFlagSet(set)
	}
	dir, kubeconfig := o.Dir.PKI(), o.Dir.ComponentKubeconfig(pki.ControllerManager)
	args := []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--secure-port=0", "--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + dir.Key(pki.ServiceAccount), "--root-ca-file=" + dir.Cert(pki.ClusterCA),
		"--cluster-signing-cert-file=" + dir.Cert(pki.ClusterCA), "--cluster-signing-key-file=" + dir.Key(pki.ClusterCA),
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
	if err := flags.Parse(append(args, o.ControllerManagerArgs...)); err != nil {
		return nil, fmt.Errorf("parse flags of kube-controller-manager: %w", err)
	}
	return func(ctx context.Context) error {
		defer configz.Delete(app.ConfigzName)
		config, err := s.Config(ctx, all, disabled, aliases)
		if err != nil {
			return fmt.Errorf("make configuration: %w", err)
		}
		return app.Run(ctx, config.Complete())
	}, nil
}
