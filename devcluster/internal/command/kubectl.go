// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func newKubectl(t *target) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--name NAME] [--dir DIR] KUBECTL-ARGUMENTS",
		Short: "Run kubectl against a cluster",
		Long: `Run kubectl against a cluster. --name and --dir come first; everything after them is kubectl's,
which has flags of the same names.`,
		Example:            "  devcluster kubectl --name two get pods --all-namespaces",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			rest, err := t.takeFlags(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 && (rest[0] == "-h" || rest[0] == "--help") {
				return c.Help()
			}
			dir, _, err := t.running()
			if err != nil {
				return err
			}
			if err := os.Setenv(clientcmd.RecommendedConfigPathEnvVar, dir.Kubeconfig()); err != nil {
				return fmt.Errorf("set kubeconfig: %w", err)
			}
			Kubectl(append([]string{"kubectl"}, rest...))
			return nil
		},
	}
}

// takeFlags takes --name and --dir from the beginning of args and returns the rest.
func (t *target) takeFlags(args []string) (rest []string, err error) {
	ours := map[string]*string{"--name": &t.name, "--dir": &t.base}
	for len(args) > 0 {
		flag, value, inline := strings.Cut(args[0], "=")
		into, found := ours[flag]
		if !found {
			break
		}
		args = args[1:]
		if !inline {
			if len(args) == 0 {
				return nil, fmt.Errorf("flag %s needs a value", flag)
			}
			value, args = args[0], args[1:]
		}
		*into = value
	}
	return args, nil
}

// Kubectl runs kubectl with the given command line; its first word is the program's name. It returns on success
// and ends the process with kubectl's exit code otherwise.
func Kubectl(args []string) {
	forgetGlobalFlags()
	os.Args = args // kubectl reads os.Args in several places, for example for plugins
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
