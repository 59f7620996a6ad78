// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

// Command returns the command interlink-plugin. It runs pods with any of the providers.
func Command(providers []cli.Provider) *cobra.Command {
	o := Options{}
	var runner string
	var names []string
	for _, p := range providers {
		if p.Name != "interlink" { // this provider would send pods in a circle
			names = append(names, p.Name)
		}
	}
	cmd := &cobra.Command{
		Use:   "interlink-plugin --runner NAME --listen URL --state-dir DIR",
		Short: "Run the pods of an interLink API server with a provider of this program",
		Long: "Run the pods of an interLink API server with a provider of this program.\n\n" +
			"The server calls it its sidecar: set SidecarURL there to what --listen is here. It needs no cluster.\n" +
			"A node of provider interlink can have it as its server, with nothing between.\n" +
			"Providers: " + strings.Join(names, ", "),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			i := slices.IndexFunc(providers, func(p cli.Provider) bool { return p.Name == runner || slices.Contains(p.Aliases, runner) })
			if i < 0 || !slices.Contains(names, providers[i].Name) {
				return fmt.Errorf("interlink-plugin: --runner %q: want one of %s", runner, strings.Join(names, ", "))
			}
			if o.StateDir == "" || o.Listen == "" {
				return fmt.Errorf("interlink-plugin: --state-dir or --listen is missing")
			}
			o.Runner = providers[i]
			return Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&runner, "runner", "process", "`name` of the provider that runs the pods")
	flags.StringVar(&o.RunnerConfig, "runner-config", "", "configuration `file` of that provider")
	flags.StringVar(&o.StateDir, "state-dir", "/var/lib/virtual-kubelet/interlink-plugin", "`directory` for what is kept of pods, with their secrets")
	flags.StringVar(&o.Listen, "listen", "", "unix:///path or http://127.0.0.1:port, which the API server has as SidecarURL (`url`)")
	flags.StringVar(&o.TokenFile, "token-file", "", "`file` with the token that requests must have, which a port of this machine wants: the API server has it in SidecarURL, http://plugin:TOKEN@127.0.0.1")
	flags.BoolVar(&o.OpenToThisMachine, "open-to-this-machine", false, "listen on a port without a token: every user of this machine can run programs with the rights of this one")
	flags.StringVar(&o.NodeName, "runner-node", "interlink", "`name` of the node that the provider is told to be")
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true }) // inherited flags belong to nodes
		cmd.Root().HelpFunc()(cmd, args)
	})
	return cmd
}
