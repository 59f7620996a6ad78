// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// defaultContractImage has the shell and the programs that the scripts of the contract need.
const defaultContractImage = "docker.io/library/busybox:1.37"

// contractFlags has the settings of only the command contract.
type contractFlags struct {
	image, program  string
	backend, result string
	only            string
	many            int
	patience        time.Duration
	yes, cleanup    bool

	names *regexp.Regexp // the parsed only. Set by check.
}

func (p Program) contractCommand(o *options) *cobra.Command {
	f := &contractFlags{}
	cmd := &cobra.Command{
		Use:   "contract",
		Short: "Check that a provider keeps the contract, with a real account",
		Long: "Check that a provider keeps the contract, with a real account or another running backend. No cluster is needed.\n\n" +
			"It calls the provider as a node named contract does, and creates pods in namespaces that begin with contract-. It first says how many,\n" +
			"and asks. Each check removes its pods. Ctrl-C ends the run: no more checks start, the pods are removed, and what could not\n" +
			"be removed is listed; a second Ctrl-C ends it at once. --cleanup removes what a killed run left behind. Use an account without\n" +
			"other pods of a node named contract, and start one run at a time.\n\n" +
			"Containers run the image of --image, which the backend must be able to pull without credentials of a pod. With a POSIX shell and sleep, env,\n" +
			"cat, stat and printf in it, such as busybox, nothing else is needed. But a shell cannot listen on a port: checks of port-forward and of network\n" +
			"probes are skipped, as are those that need to break the backend. To have the former too, or without a shell, make an image with the\n" +
			"program of the contract, and name its path by --program:\n\n" +
			"  CGO_ENABLED=0 go build -o contractprogram github.com/virtual-kubelet/virtual-kubelet/providertest/program/contractprogram\n" +
			"  printf 'FROM scratch\\nCOPY contractprogram /contractprogram\\n' > Dockerfile   # then build and push it\n" +
			"  " + p.name() + " contract --provider NAME --provider-config FILE --image REGISTRY/IMAGE --program /contractprogram\n\n" +
			"The table of support is made from the file of --result. The exit code is 0 if no check failed and nothing is left behind, 1 if not,\n" +
			"and 2 if the run itself failed.",
		Args: usageArguments(noArguments("")),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := f.check()
			if err == nil {
				err = p.contract(o, f, cmd)
			}
			if code := (exitError{}); err == nil || errors.As(err, &code) {
				return err
			}
			return exitError{2, err}
		},
	}
	cmd.SetFlagErrorFunc(usageFlagError)
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&f.yes, "yes", "y", false, "create and remove pods without asking")
	flags.StringVar(&f.result, "result", "", "`file` for the results, whose name ends in .json or .yaml; needs --backend")
	flags.StringVar(&f.backend, "backend", "", "`description` of the backend in the results: service, region and kind of account")
	flags.StringVar(&f.image, "image", defaultContractImage, "`image` of the containers")
	flags.StringVar(&f.program, "program", "", "`path` of contractprogram in the image; by default scripts for its shell are used")
	flags.StringVar(&f.only, "run", "", "run only checks whose names match this `expression`, such as ^(creation|deletion)/")
	flags.IntVar(&f.many, "many", 5, "how many pods the checks of many pods create at once")
	flags.DurationVar(&f.patience, "patience", 5*time.Minute, "how long a change may take to be seen, and a pod to be removed")
	flags.BoolVar(&f.cleanup, "cleanup", false, "only remove what an earlier run left behind")
	return cmd
}

// check refuses flags that cannot work, before any request to the backend.
func (f *contractFlags) check() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.image == "" {
		refuse("--image: want the name of an image")
	}
	if f.program != "" && !strings.HasPrefix(f.program, "/") {
		refuse("--program %q: want a path from the root of the image", f.program)
	}
	if f.many < 1 {
		refuse("--many %d: want 1 or more", f.many)
	}
	if f.patience < time.Second {
		refuse("--patience %s: want 1s or more", f.patience)
	}
	if f.result != "" {
		if err := providertest.CheckResultName(f.result); err != nil {
			refuse("--result: %w", err)
		}
		if f.backend == "" {
			refuse("--result needs --backend: results are of use with the backend that they are about")
		}
	}
	if f.only != "" {
		names, err := regexp.Compile(f.only)
		if err != nil {
			refuse("--run: %w", err)
		}
		f.names = names
	}
	if f.names != nil && !anyCheck(f.names) {
		refuse("--run %q: no check has such a name", f.only)
	}
	return errors.Join(errs...)
}

func anyCheck(names *regexp.Regexp) bool {
	for _, k := range providertest.Checks() {
		if names.MatchString(k.Name) {
			return true
		}
	}
	return false
}

// contract runs the contract, or removes the leftovers of an earlier run.
func (p Program) contract(o *options, f *contractFlags, cmd *cobra.Command) error {
	r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv)
	if r == nil {
		return err
	}
	if r.unread != nil { // the remaining errors concern only a running node
		return r.unread
	}
	chosen, err := choose(p.Providers, o.Provider)
	if err != nil {
		return err
	}
	c := &contractRun{
		contractFlags: f, config: o.ProviderConfig, in: cmd.InOrStdin(), out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(),
		harness: o.contractHarness(chosen, f, p.version()),
	}
	c.harness.Each, c.subject = c.show, c.harness.Subject
	if chosen.Capabilities != nil {
		declared, err := chosen.Capabilities(o.ProviderConfig)
		if err != nil {
			return fmt.Errorf("provider %s: %w", chosen.Name, err)
		}
		c.declared = &declared
	}
	if err := o.startLogging(cmd.ErrOrStderr()); err != nil {
		return err
	}
	ctx, stop := untilSwept(cmd.Context())
	defer stop()
	if f.cleanup {
		return c.cleanUp(ctx)
	}
	return c.run(ctx)
}
