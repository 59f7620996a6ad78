// SPDX-License-Identifier: Apache-2.0

// Package command is devcluster's command line.
//
// Each command is one file. Commands reach a running cluster only through its directory and its API server, so
// they work from any terminal. Note: "up --detach" starts the same program again with the same
// arguments, in a session of its own, and reads its progress from a pipe.
package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/controlplane"
	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/state"
)

const rootHelp = `devcluster runs a real Kubernetes control plane for development and tests: etcd,
kube-apiserver, kube-controller-manager and kube-scheduler in one process on the loopback
interface, with certificates, RBAC, the Node authorizer and NodeRestriction.

There are no nodes: bring your own, with credentials from "devcluster node-credentials".
Called through a link named kubectl, this program is kubectl.

A cluster lives in DIR/NAME; DIR is --dir, else $DEVCLUSTER_HOME, else
virtual-kubelet/devcluster in your cache directory.`

const rootExample = `  devcluster up --detach          start a cluster and return
  devcluster kubectl get ns       talk to it
  export KUBECONFIG=$(devcluster kubeconfig)
  devcluster down --delete        stop it and throw its data away

  devcluster up -d --name two     a second one beside it`

// silent is an exit code without a message: the command has already printed everything.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit code %d", int(s)) }

// Main runs the command line of this process and returns its exit code.
func Main() int {
	forgetGlobalFlags()
	err := newRoot().Execute()
	var code silent
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		return 1
	}
}

// forgetGlobalFlags drops the flags registered by the components' packages for every program in this process,
// including a --version with a different meaning.
func forgetGlobalFlags() {
	pflag.CommandLine = pflag.NewFlagSet("devcluster", pflag.ExitOnError)
}

func newRoot() *cobra.Command {
	t := &target{}
	root := &cobra.Command{
		Use:           "devcluster",
		Short:         "A Kubernetes control plane for development, in one process",
		Long:          rootHelp,
		Example:       rootExample,
		Version:       fmt.Sprintf("Kubernetes %s, etcd %s", controlplane.KubernetesVersion(), controlplane.EtcdVersion()),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().StringVar(&t.name, "name", "default", "the cluster's `name`")
	root.PersistentFlags().StringVar(&t.base, "dir", "", "base `directory` of all clusters (default $DEVCLUSTER_HOME or the cache directory)")
	root.AddCommand(newUp(t), newDown(t), newStatus(t), newList(t), newKubectl(t), newKubeconfig(t), newNodeCredentials(t))
	return root
}

// target is the cluster of a command.
type target struct{ name, base string }

func (t *target) dir() (state.Dir, error) {
	base, err := state.Base(t.base)
	if err != nil {
		return state.Dir{}, err
	}
	return state.At(base, t.name)
}

// running returns the cluster's directory and status, or an error that says how to start the cluster.
func (t *target) running() (state.Dir, state.Status, error) {
	dir, err := t.dir()
	if err != nil {
		return dir, state.Status{}, err
	}
	status, err := dir.Status()
	if err != nil {
		return dir, status, err
	}
	if status.Phase != state.Running {
		return dir, status, fmt.Errorf("cluster %s is %s; start it with: devcluster up --detach%s", t.name, status.Phase, t.flags())
	}
	return dir, status, nil
}

// flags returns the flags, with a leading space, that name this cluster in a command for the user to type.
func (t *target) flags() string {
	var s string
	if t.name != "default" {
		s += " --name " + t.name
	}
	if t.base != "" {
		s += " --dir " + t.base
	}
	return s
}
