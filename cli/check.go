// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func (p Program) checkCommand(o *options) *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "check -f FILE|FOLDER",
		Short: "Check whether a node with these settings can run the pods in files",
		Long: "Check whether a node with these settings can run the pods in files, without a cluster.\n\n" +
			"A file has objects in YAML or JSON, or lists of them: pods, and what makes pods, such as a Deployment. Other objects are\n" +
			"ignored. A field that does not exist is an error, as for kubectl apply.\n" +
			"The provider maps each pod as its node would, and asks nobody. It reads no ConfigMap, Secret or token: for a pod\n" +
			"that can run, the output names the fields that it would run without, and the objects that were not read.\n" +
			"The exit code is 0 if all pods can run, 1 if one cannot, and 2 if the check itself failed.",
		Example: "  " + p.name() + " check --provider NAME -f pods.yaml -f more/\n" +
			"  kubectl get pods -o yaml | " + p.name() + " check --provider NAME -f -",
		Args: usageArguments(noArguments("-f")),
		RunE: func(cmd *cobra.Command, _ []string) error {
			refuse, err := p.refuser(o, cmd)
			if err != nil {
				return exitError{2, err}
			}
			c := &podChecker{out: cmd.OutOrStdout(), stdin: cmd.InOrStdin(), refuse: refuse}
			fine, err := c.checkFiles(files)
			switch {
			case err != nil:
				return exitError{2, err}
			case !fine:
				return exitError{code: 1}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(usageFlagError)
	cmd.Flags().StringSliceVarP(&files, "filename", "f", []string{"-"}, "`file` with the pods, or a folder of such files; - is standard input; may be repeated")
	return cmd
}

// refuser returns a function that reports why the node would refuse a pod, or which features the pod would lack. It uses the chosen
// provider and its configuration.
func (p Program) refuser(o *options, cmd *cobra.Command) (func(*corev1.Pod) (without []capability.Unsupported, err error), error) {
	if r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv); r == nil {
		return nil, err
	}
	chosen, err := choose(p.Providers, o.Provider)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.checkAccepted()...); err != nil {
		return nil, err
	}
	declared, maps := capability.All(), func(*corev1.Pod) error { return nil }
	if chosen.Capabilities != nil {
		if declared, err = chosen.Capabilities(o.ProviderConfig); err != nil {
			return nil, fmt.Errorf("provider %s: %w", chosen.Name, err)
		}
	}
	if chosen.Check != nil {
		if maps, err = chosen.Check(o.ProviderConfig); err != nil {
			return nil, fmt.Errorf("provider %s: %w", chosen.Name, err)
		}
	}
	declared = o.accept(declared)
	return func(pod *corev1.Pod) ([]capability.Unsupported, error) {
		if unsupported := declared.Check(pod); len(unsupported) > 0 {
			return nil, errdefs.InvalidInput(capability.Message(unsupported))
		}
		without := declared.Unenforced(pod)
		declared.LeaveOut(pod)
		return without, maps(pod)
	}, nil
}

// title returns the name of an object for messages.
func title(object runtime.Object) string {
	kind, name := object.GetObjectKind().GroupVersionKind().Kind, ""
	if m, err := meta.Accessor(object); err == nil {
		name = m.GetName()
	}
	return kind + " " + name
}
