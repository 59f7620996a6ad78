// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// Kubectl runs kubectl as the administrator and returns its output. The error is an [*exec.ExitError] with
// kubectl's exit code if it was not 0. It ends with the test at the latest.
func (a *API) Kubectl(t testing.TB, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := a.KubectlCommand(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// KubectlCommand returns the command of [API.Kubectl], for tests that feed its standard input, read while it
// runs or end it themselves.
func (a *API) KubectlCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	program := a.binary
	if program == "" {
		var err error
		if program, err = exec.LookPath("kubectl"); err != nil {
			t.Fatalf("find kubectl, or build bin/devcluster, which is one: %v", err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Args[0] = "kubectl" // devcluster called by this name is kubectl
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.KubeconfigPath)
	return cmd
}
