// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command returns the command new-provider of a program with the given version.
func Command(version string) *cobra.Command {
	var n New
	var replace string
	cmd := &cobra.Command{
		Use:   "new-provider --module PATH --name NAME DIR",
		Short: "Write the skeleton of a provider into the folder DIR: it builds, keeps the contract, and lists what to fill in",
		Long: "Write the skeleton of a provider into the folder DIR: it builds, keeps the contract, and lists what to fill in.\n\n" +
			"DIR must not exist, or be empty. The skeleton runs pods in a service in memory, which you replace by yours;\n" +
			"its README.md says where, and docs/providers/writing.md is the guide.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("new-provider: got %d folders, want one: the folder to write", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			n.Dir = args[0]
			if n.Library, err = FindLibrary(replace, version, Folders()...); err != nil {
				return fmt.Errorf("new-provider: %w", err)
			}
			if err := n.Write(); err != nil {
				return fmt.Errorf("new-provider: %w", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Provider %s is in %s. See that it keeps the contract:\n\n  %s\n\nThen its README.md says what to fill in.\n",
				n.Name, n.Dir, strings.Join(n.Next(), "\n  "))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&n.Module, "module", "", "`path` of the Go module, such as example.com/me/vk-foo; with Python it may be left out")
	flags.StringVar(&n.Name, "name", "", "`name` of the provider, such as foo")
	flags.StringVar(&n.Language, "language", "go", "`language`: "+strings.Join(Languages, " or "))
	flags.StringVar(&replace, "replace", "", "`root` of a clone of virtual-kubelet to build with; by default the release that this program is, or the clone that it is in")
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true }) // they are of nodes
		cmd.Root().HelpFunc()(cmd, args)
	})
	return cmd
}

// Next returns the two commands that run the contract tests of the new provider.
func (n New) Next() []string {
	tidy := "go mod tidy"
	if n.Language == "python" {
		tidy = "make tidy"
	}
	return []string{"cd " + quotePath(n.Dir) + " && " + tidy, "make contract"}
}

// quotePath quotes a path as one word for a shell.
func quotePath(path string) string {
	if strings.IndexFunc(path, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+", r)
	}) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
