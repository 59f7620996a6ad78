// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/pki"
)

const nodeHelp = `Make what a node needs to join the cluster:

  kubeconfig    a client certificate of the user system:node:NODE in group system:nodes
  kubelet.crt   a certificate for the node's own HTTPS server, which the API server verifies
  kubelet.key   its private key
  ca.crt        the cluster's authority: signs the above and the API server's certificates

The server certificate is valid for localhost, 127.0.0.1, ::1, this host's name, NODE and --san.`

func newNodeCredentials(t *target) *cobra.Command {
	var out string
	var sans []string
	c := &cobra.Command{
		Use: "node-credentials NODE", Short: "Make a kubeconfig and a serving certificate for a node", Long: nodeHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
				return fmt.Errorf("node name %q: %s", name, errs[0])
			}
			dir, status, err := t.running()
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join(dir.Nodes(), name)
			}
			if out, err = filepath.Abs(out); err != nil {
				return fmt.Errorf("make %s absolute: %w", out, err)
			}
			node := pki.Node{Name: name, Cluster: "devcluster-" + dir.Name, Server: status.Record.Server, SANs: sans}
			if err := dir.PKI().WriteNode(out, node); err != nil {
				return err
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "kubeconfig\t%s\ncertificate\t%s\nkey\t%s\nauthority\t%s\n",
				filepath.Join(out, pki.NodeKubeconfig), filepath.Join(out, pki.NodeServingCert),
				filepath.Join(out, pki.NodeServingKey), filepath.Join(out, pki.NodeCA))
			return w.Flush()
		},
	}
	c.Flags().StringVar(&out, "out", "", "`directory` to write to (default DIR/NAME/nodes/NODE, where a restart keeps the server's address right)")
	c.Flags().StringSliceVar(&sans, "san", nil, "further host `name` or address of the node's HTTPS server (repeatable)")
	return c
}
