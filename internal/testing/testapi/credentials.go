// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// NodeCredentials are the files of a node for joining the cluster as itself.
type NodeCredentials struct {
	// Kubeconfig is the kubeconfig of the user system:node:NAME in group system:nodes.
	Kubeconfig string
	// CertFile and KeyFile are for the node's HTTPS server, valid for localhost, 127.0.0.1 and the requested
	// further names. The API server of a cluster of this package verifies them.
	CertFile, KeyFile string
	// CAFile checks the API server's client certificates at the node.
	CAFile string
}

// NodeCredentials makes credentials for a node. Its server also has the names or addresses sans. They are
// deleted at the test's end.
func (a *API) NodeCredentials(t testing.TB, node string, sans ...string) NodeCredentials {
	t.Helper()
	dir := t.TempDir()
	c := NodeCredentials{
		Kubeconfig: filepath.Join(dir, "kubeconfig"),
		CertFile:   filepath.Join(dir, "kubelet.crt"),
		KeyFile:    filepath.Join(dir, "kubelet.key"),
		CAFile:     a.CAFile,
	}
	if a.cluster == nil {
		a.requestCredentials(t, node, sans, c)
		return c
	}
	cmd := exec.CommandContext(t.Context(), a.binary, "node-credentials", node,
		"--dir="+a.cluster.base, "--name="+a.cluster.name, "--out="+dir, "--san="+strings.Join(sans, ","))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make credentials of node %s: %v: %s", node, err, out)
	}
	return c
}
