// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
)

// helpColumns is the width of help.
const helpColumns = 100

// takesSettings marks the commands that read the settings of a node.
const takesSettings = "virtual-kubelet.io/settings"

// withSettings marks cmd as a command that reads the settings of a node.
func withSettings(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{takesSettings: "true"}
	return cmd
}

// setHelp makes the help text group the flags of nodes as the reference does, wrap lines, and list these flags once.
func setHelp(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		writeUsage(cmd.OutOrStderr(), cmd)
		return nil
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd) })
}

func writeHelp(w io.Writer, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(w, "%s\n\n", strings.TrimRight(text, "\n"))
	writeUsage(w, cmd)
}

func writeUsage(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintln(w, "Usage:")
	if cmd.Runnable() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(w, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	sections := flagSections(cmd)
	for _, name := range sections.Order {
		if set := sections.FlagSets[name]; set.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s flags:\n%s", strings.ToUpper(name[:1])+name[1:], set.FlagUsagesWrapped(helpColumns))
		}
	}
	switch {
	case cmd.HasParent() && cmd.Annotations[takesSettings] != "":
		fmt.Fprintf(w, "\nThe flags for the settings of the node work too: see %s --help.\n", cmd.Root().Name())
	case !cmd.HasParent():
		fmt.Fprintf(w, "\n%s COMMAND --help says more about a command.\n", cmd.Name())
	}
}

// flagSections returns the flags for the help text, by the groups of the settings.
func flagSections(cmd *cobra.Command) cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets
	general := "other"
	if cmd.HasParent() {
		general = cmd.Name()
	}
	byName := map[string]string{}
	for _, s := range settings() {
		byName[s.flag] = s.group
	}
	add := func(f *pflag.Flag) {
		group, isSetting := byName[f.Name]
		switch {
		case !isSetting && strings.HasPrefix(f.Name, klogPrefix):
			group = groupLogs
		case group == "":
			group = general
		}
		set := sections.FlagSet(group)
		set.SortFlags = false
		set.AddFlag(f)
	}
	cmd.InitDefaultHelpFlag()
	if !cmd.HasParent() {
		for _, group := range append([]string{general}, groups...) {
			sections.FlagSet(group)
		}
	}
	cmd.Flags().SortFlags = false // LocalFlags sorts unless this is false
	cmd.LocalFlags().VisitAll(add)
	return sections
}

// flagError describes a wrong flag in the same words as for a file and the environment.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		value   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &invalid):
		return fmt.Errorf("flag --%s is %q, want %s", invalid.GetFlag().Name, invalid.GetValue(), typeName(invalid.GetFlag()))
	case errors.As(err, &value) && value.GetFlag() != nil:
		return fmt.Errorf("flag --%s has no value, want %s", value.GetFlag().Name, typeName(value.GetFlag()))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		name := unknown.GetSpecifiedName()
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if near := configfile.Nearest(name, known); near != "" {
			return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, near)
		}
		return fmt.Errorf("unknown flag --%s: see %s --help", name, cmd.CommandPath())
	}
	return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
}

// knownCommand refuses the name of a command that does not exist.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if near := configfile.Nearest(args[0], known); near != "" {
		return fmt.Errorf("unknown command %q; did you mean %s %s?", args[0], cmd.CommandPath(), near)
	}
	return fmt.Errorf("unknown command %q: see %s --help", args[0], cmd.CommandPath())
}

// noArguments refuses arguments of a command that has only flags; instead is the flag or command to suggest.
func noArguments(instead string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if instead != "" {
			return fmt.Errorf("unexpected argument %q: use %s: %s %s %s", args[0], instead, cmd.CommandPath(), instead, args[0])
		}
		return fmt.Errorf("unexpected argument %q: %s takes none; see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
}

// usageFlagError is flagError for commands whose exit code 1 is an answer.
func usageFlagError(cmd *cobra.Command, err error) error { return exitError{2, flagError(cmd, err)} }

// usageArguments is check for commands whose exit code 1 is an answer.
func usageArguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exitError{2, err}
		}
		return nil
	}
}

// completeValues adds shell completion for settings with a few possible values.
func (p Program) completeValues(root *cobra.Command) {
	for flag, values := range map[string][]string{
		"provider":           providerNames(p.Providers),
		"os":                 {"linux", "windows"},
		"taint-effect":       {"NoSchedule", "PreferNoSchedule", "NoExecute"},
		"accept-unenforced":  acceptableNames(),
		"log-level":          {"debug", "info", "warn", "error"},
		"log-format":         {"text", "json"},
		"tls-min-version":    {"VersionTLS12", "VersionTLS13"},
		"tls-cipher-suites":  cliflag.PreferredTLSCipherNames(),
		"trace-sample-rate":  {"always", "never"},
		"node-ip":            nil,
		"nodename":           nil,
		"nodes":              nil,
		"port":               nil,
		"cluster-domain":     nil,
		"taint-key":          nil,
		"taint-value":        nil,
		"trace-service-name": nil,
	} {
		slices.Sort(values)
		if err := root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // a flag of this map is not in the table of settings: a bug of this package
		}
	}
}
