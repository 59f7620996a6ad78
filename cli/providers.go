// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func (p Program) providersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "providers [NAME]",
		Short: "List the providers, or print a sample configuration of one",
		Long: "List the providers with a line about each. With NAME, print a sample of the configuration file of that provider,\n" +
			"whose comments say what each field means.",
		Example: "  " + p.name() + " providers\n  " + p.name() + " providers NAME > provider.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("unexpected argument %q: name one provider", args[1])
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return providerNames(p.Providers), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				provider, err := choose(p.Providers, args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), provider.sample())
				return err
			}
			lines := make([]string, 0, len(p.Providers))
			for _, provider := range p.Providers {
				lines = append(lines, strings.TrimRight(provider.Name+"\t"+provider.summary(), "\t")+"\n")
			}
			slices.Sort(lines)
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprint(w, strings.Join(lines, ""))
			return w.Flush()
		},
	}
}

// summary returns the line about the provider, or "" if it has no README.
func (p Provider) summary() string {
	title, _, _ := strings.Cut(p.Readme, "\n")
	_, summary, _ := strings.Cut(title, ": ")
	return summary
}

// sampleBlock matches the YAML below the heading of the configuration file.
var sampleBlock = regexp.MustCompile("(?s)\n## Configuration file\n.*?\n```yaml\n(.*?\n)```\n")

// sample returns a configuration file with comments. Without a sample in the README, the file has only comments.
func (p Provider) sample() string {
	head := "# Provider " + p.Name
	if s := p.summary(); s != "" {
		head += ": " + s
	}
	section, _, _ := strings.Cut(p.Readme, "\n## Configuration file\n")
	rest := strings.TrimPrefix(p.Readme, section)
	if next := strings.Index(strings.TrimPrefix(rest, "\n"), "\n## "); next >= 0 {
		rest = rest[:next+2]
	}
	block := sampleBlock.FindStringSubmatch(rest)
	if block == nil {
		return head + ".\n# It has no sample of a configuration file.\n"
	}
	return head + ".\n# A sample: keep what you need, with your own values. Pass the file with --provider-config.\n" + block[1]
}
