// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func (p Program) checkCommand(o *options) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Check whether a node with these settings can run the pods in a file",
		Long: "Check whether a node with these settings can run the pods in a file, without a cluster.\n\n" +
			"The file has objects in YAML or JSON: pods, and what makes pods, such as a Deployment. Other objects are ignored.\n" +
			"The provider maps each pod as its node would, and asks nobody. It reads no ConfigMap, Secret or token: for a pod\n" +
			"that can run, the output names the fields that it would run without, and the objects that were not read.\n" +
			"The exit code is 0 if all pods can run, 1 if one cannot, and 2 if the check itself failed.",
		Args: usageArguments(noArguments("-f")),
		RunE: func(cmd *cobra.Command, _ []string) error {
			refuse, err := p.refuser(o, cmd)
			if err != nil {
				return exitError{2, err}
			}
			fine, err := checkFile(cmd.OutOrStdout(), file, cmd.InOrStdin(), refuse)
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
	cmd.Flags().StringVarP(&file, "filename", "f", "-", "`file` with the pods; - is standard input")
	return cmd
}

// refuser returns the function that says why the node would not run a pod, or what the pod would run without, with the chosen provider and its
// configuration.
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

// checkFile writes a line for each pod in a file, and reports whether all can run.
func checkFile(out io.Writer, name string, stdin io.Reader, refuse func(*corev1.Pod) ([]capability.Unsupported, error)) (fine bool, err error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return false, fmt.Errorf("read the pods: %w", err)
		}
		defer f.Close()
		in = f
	}
	fine, seen := true, 0
	for docs := yaml.NewYAMLReader(bufio.NewReader(in)); ; {
		doc, err := docs.Read()
		switch {
		case errors.Is(err, io.EOF) && seen == 0:
			return false, fmt.Errorf("%s has no pod, and nothing that makes pods", name)
		case errors.Is(err, io.EOF):
			return fine, nil
		case err != nil:
			return false, fmt.Errorf("read %s: %w", name, err)
		case len(bytes.TrimSpace(doc)) == 0:
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			continue // a custom resource
		}
		if err != nil {
			return false, fmt.Errorf("read %s: %w", name, err)
		}
		pod := podOf(object)
		if pod == nil {
			continue
		}
		seen++
		says := "can run"
		without, err := refuse(pod)
		if err != nil {
			fine, says = false, err.Error()
		} else {
			for _, u := range without {
				says += "; without " + u.String()
			}
			if names := unread(pod); len(names) > 0 {
				says += "; not read: " + strings.Join(names, ", ")
			}
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", title(object), says); err != nil {
			return false, err
		}
	}
}

// title names an object as users do.
func title(object runtime.Object) string {
	kind, name := object.GetObjectKind().GroupVersionKind().Kind, ""
	if m, err := meta.Accessor(object); err == nil {
		name = m.GetName()
	}
	return kind + " " + name
}
