// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Command returns the command with all its subcommands, for programs with commands of their own. The node stops when its context ends.
func (p Program) Command() *cobra.Command {
	o := &options{}
	var showVersion *bool
	root := &cobra.Command{
		Use:   p.name(),
		Short: "Run a virtual node: the Kubernetes API on top, a provider below",
		Long: "Run a virtual node: the Kubernetes API on top, a provider below.\n\n" +
			"A setting can be given as a flag, as an environment variable, or in the file of --config, which take\n" +
			"precedence in this order. `" + p.name() + " config print` shows the effective settings.",
		Args:          knownCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if *showVersion { // not cobra's template: with a template, the linker keeps the methods of all types, and the program grows by half
				_, err := fmt.Fprint(cmd.OutOrStdout(), p.build())
				return err
			}
			r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv)
			if r == nil {
				return err
			}
			if _, missing := choose(p.Providers, r.Provider); missing != nil {
				if cmd.Flags().NFlag() == 0 {
					writeHelp(cmd.ErrOrStderr(), cmd)
					return missing
				}
				err = errors.Join(missing, err)
			}
			if err != nil {
				return err
			}
			return p.run(cmd.Context(), r, cmd.ErrOrStderr())
		},
	}
	showVersion = root.Flags().Bool("version", false, "print the version, as the command version does")
	o.define(root.PersistentFlags(), p.Providers...)
	if len(p.Providers) > 1 {
		root.PersistentFlags().Lookup("provider").Usage += ": " + strings.Join(providerTitles(p.Providers), ", ")
	}
	root.PersistentFlags().SortFlags = false
	setHelp(root)
	root.SetFlagErrorFunc(flagError)
	p.completeValues(root)
	root.AddCommand(p.providersCommand(), p.versionCommand(), o.configCommand(),
		withSettings(p.doctorCommand(o)), withSettings(p.checkCommand(o)), withSettings(p.contractCommand(o)), withSettings(o.livezCommand()))
	root.AddCommand(p.Commands...)
	return root
}

func (o *options) configCommand() *cobra.Command {
	config := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	config.AddCommand(withSettings(&cobra.Command{
		Use:   "print",
		Short: "Print the effective settings, and where each comes from, as a configuration file",
		Args:  noArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv)
			if r == nil {
				return err
			}
			// Wrong settings are shown too, because the user looks for the mistake here.
			text, printErr := r.print()
			if printErr == nil {
				_, printErr = cmd.OutOrStdout().Write(text)
			}
			return errors.Join(err, printErr)
		},
	}))
	return config
}
