// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// Command returns the command admiralty-agent.
func Command() *cobra.Command {
	var configPath, kubeconfig, namespace, address, cert, key string
	cmd := &cobra.Command{
		Use:   "admiralty-agent --config FILE",
		Short: "Give elected pods to the target of provider admiralty where they fit",
		Long: "Give elected pods to the target of provider admiralty where they fit.\n\n" +
			"It runs in the cluster of the nodes, serves the webhook for pods with the annotation multicluster.admiralty.io/elect, and binds\n" +
			"each of them to a node whose target has room. Several may run; one at a time binds.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if configPath == "" {
				return errors.New("admiralty-agent: --config is missing: name the file with the targets")
			}
			config, err := LoadConfig(configPath)
			if err != nil {
				return fmt.Errorf("admiralty-agent: %w", err)
			}
			access, err := clientcmd.BuildConfigFromFlags("", kubeconfig) // "" means the ServiceAccount of the pod
			if err != nil {
				return fmt.Errorf("admiralty-agent: access to the cluster: %w", err)
			}
			access.UserAgent, access.QPS, access.Burst = "virtual-kubelet-admiralty-agent", 50, 100
			o := Options{Config: config, Access: access, Namespace: namespace, CertFile: cert, KeyFile: key}
			if address != "" {
				var socket net.ListenConfig
				if o.Listener, err = socket.Listen(cmd.Context(), "tcp", address); err != nil {
					return fmt.Errorf("admiralty-agent: listen for the webhook: %w", err)
				}
			}
			return Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&configPath, "config", "", "`file` with the targets")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "`file` with the access to the cluster of the nodes; by default that of the pod's ServiceAccount")
	flags.StringVar(&namespace, "lease-namespace", "kube-system", "`namespace` of the lease by which one agent at a time binds pods")
	flags.StringVar(&address, "webhook-address", ":9443", "`address` of the webhook; empty for none")
	flags.StringVar(&cert, "webhook-cert-file", "", "`file` with the certificate of the webhook")
	flags.StringVar(&key, "webhook-key-file", "", "`file` with the key of the webhook")
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true }) // inherited flags belong to nodes
		cmd.Root().HelpFunc()(cmd, args)
	})
	return cmd
}
