// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Command returns the command with all that belongs to it, for programs that
// have commands of their own. Its context ends the node.
func (p Program) Command() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   p.name(),
		Short: "Run a virtual node: the Kubernetes API on top, a provider below",
		Long: "Run a virtual node: the Kubernetes API on top, a provider below.\n\n" +
			"A setting can be given as a flag, as an environment variable, or in the file of --config, which take precedence\n" +
			"in this order. `" + p.name() + " config print` shows the effective settings.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv)
			if err != nil {
				return err
			}
			return p.run(cmd.Context(), r, cmd.ErrOrStderr())
		},
	}
	o.define(root.PersistentFlags(), p.Providers...)
	if len(p.Providers) > 1 {
		root.PersistentFlags().Lookup("provider").Usage += ": " + strings.Join(providerTitles(p.Providers), ", ")
	}
	root.PersistentFlags().SortFlags = false
	root.AddCommand(p.providersCommand(), p.versionCommand(), o.configCommand(), p.doctorCommand(o), p.checkCommand(o), p.contractCommand(o))
	root.AddCommand(p.Commands...)
	return root
}

func (p Program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Version: %s, Built: %s\n", p.version(), p.buildTime())
			return err
		},
	}
}

func (p Program) providersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "providers [NAME]",
		Short: "List the providers, or check that there is one called NAME",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			names := providerNames(p.Providers)
			if len(args) == 1 {
				provider, err := choose(p.Providers, args[0])
				if err != nil {
					return err
				}
				names = []string{provider.Name}
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(names, "\n"))
			return err
		},
	}
}

func (o *options) configCommand() *cobra.Command {
	config := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	config.AddCommand(&cobra.Command{
		Use:   "print",
		Short: "Print the effective settings, and where each comes from, as a configuration file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv)
			if r == nil {
				return err
			}
			// Settings that are wrong are shown all the same: this is where one looks for why.
			text, printErr := r.print()
			if printErr == nil {
				_, printErr = cmd.OutOrStdout().Write(text)
			}
			return errors.Join(err, printErr)
		},
	})
	return config
}
