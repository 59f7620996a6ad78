// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/state"
)

func newStatus(t *target) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say whether a cluster runs, and where", Args: cobra.NoArgs,
		Long: "Say whether a cluster runs, and where. The exit code is 0 for a cluster that is ready and 1 for any other.",
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := t.dir()
			if err != nil {
				return err
			}
			status, err := dir.Status()
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "name\t%s\nstate\t%s\n", dir.Name, status.Phase)
			if status.PID != 0 {
				fmt.Fprintf(w, "pid\t%d\n", status.PID)
			}
			if status.Phase == state.Running {
				r := status.Record
				fmt.Fprintf(w, "address\t%s\nsince\t%s\n", r.Server, r.Started.Format(time.RFC3339))
				fmt.Fprintf(w, "kubernetes\t%s\netcd\t%s\nkubeconfig\t%s\n", r.Kubernetes, r.Etcd, dir.Kubeconfig())
			}
			if dir.Exists() {
				fmt.Fprintf(w, "directory\t%s\nlog\t%s\n", dir.Path(), dir.Log())
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if status.Phase != state.Running {
				return silent(1)
			}
			return nil
		},
	}
}

func newList(t *target) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all clusters below the base directory", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			base, err := state.Base(t.base)
			if err != nil {
				return err
			}
			dirs, err := state.List(base)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tSTATE\tPID\tADDRESS")
			for _, dir := range dirs {
				status, err := dir.Status()
				if err != nil {
					return err
				}
				pid, address := "-", "-"
				if status.PID != 0 {
					pid = fmt.Sprint(status.PID)
				}
				if status.Phase == state.Running {
					address = status.Record.Server
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", dir.Name, status.Phase, pid, address)
			}
			return w.Flush()
		},
	}
}

func newKubeconfig(t *target) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of a running cluster's kubeconfig", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, _, err := t.running()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), dir.Kubeconfig())
			return err
		},
	}
}
