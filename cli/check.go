// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

func (p Program) checkCommand(o *options) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Check whether a node with these settings can run the pods in a file",
		Long: "Check whether a node with these settings can run the pods in a file, without a cluster.\n\n" +
			"The file has objects in YAML or JSON: pods, and what makes pods, such as a Deployment. Other objects are ignored.\n" +
			"The exit code is 0 if all pods can run, 1 if one cannot, and 2 if the check itself failed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			declared, err := p.declared(o, cmd)
			if err != nil {
				return exitError{2, err}
			}
			fine, err := checkFile(cmd.OutOrStdout(), file, cmd.InOrStdin(), declared)
			switch {
			case err != nil:
				return exitError{2, err}
			case !fine:
				return exitError{code: 1}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exitError{2, err} })
	cmd.Flags().StringVarP(&file, "filename", "f", "-", "`file` with the pods; - is standard input")
	return cmd
}

// declared returns what the chosen provider declares, with its configuration.
func (p Program) declared(o *options, cmd *cobra.Command) (capability.Declaration, error) {
	if r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv); r == nil {
		return capability.Declaration{}, err
	}
	chosen, err := choose(p.Providers, o.Provider)
	switch {
	case err != nil:
		return capability.Declaration{}, err
	case chosen.Capabilities == nil:
		return capability.All(), nil
	}
	declared, err := chosen.Capabilities(o.ProviderConfig)
	if err != nil {
		return capability.Declaration{}, fmt.Errorf("provider %s: %w", chosen.Name, err)
	}
	return declared, nil
}

// checkFile writes a line for each pod in a file, and reports whether all can run.
func checkFile(out io.Writer, name string, stdin io.Reader, declared capability.Declaration) (fine bool, err error) {
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
		spec := podSpecOf(object)
		if spec == nil {
			continue
		}
		seen++
		failure := "can run"
		if unsupported := declared.Check(&corev1.Pod{Spec: *spec}); len(unsupported) > 0 {
			fine, failure = false, capability.Message(unsupported)
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", title(object), failure); err != nil {
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

// podSpecOf returns the spec of the pods that an object is or makes, nil if it makes none.
func podSpecOf(object runtime.Object) *corev1.PodSpec {
	switch o := object.(type) {
	case *corev1.Pod:
		return &o.Spec
	case *corev1.PodTemplate:
		return &o.Template.Spec
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return nil
		}
		return &o.Spec.Template.Spec
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *batchv1.Job:
		return &o.Spec.Template.Spec
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec
	}
	return nil
}
