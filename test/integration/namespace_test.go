// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"os/exec"
	"syscall"
)

const (
	// insideVar marks a process that is in its own network namespace.
	insideVar = "VK_TEST_IN_NAMESPACE"
	// nodeAddress is the node's address in the namespace besides loopback, because the API server refuses to
	// proxy to a loopback address. The address is reserved for documentation, so no other host has it.
	nodeAddress = "192.0.2.10"
	// prepare brings up the loopback interface with nodeAddress, and then executes the tests.
	prepare = "ip link set lo up && ip addr add " + nodeAddress + `/32 dev lo && exec "$0" "$@"`
)

// enterNamespace restarts the tests in a network namespace of their own, where no other process listens and no
// packet leaves. Where that is not allowed, enterNamespace returns, and the tests that need nodeAddress skip.
func enterNamespace() {
	if inNamespace() || os.Getenv("VK_TEST_KUBECONFIG") != "" { // an existing cluster cannot be reached from the namespace
		return
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return
	}
	args := []string{unshare, "--net"}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--map-root-user")
	}
	args = append(args, "sh", "-c", prepare)
	if exec.Command(args[0], append(args[1:], "true")...).Run() != nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	env := append(os.Environ(), insideVar+"=1")
	// Exec returns only on an error. Otherwise the same process goes on, so signals and time-outs still work.
	_ = syscall.Exec(unshare, append(append(args, self), os.Args[1:]...), env)
}

// inNamespace reports whether the tests are in their own namespace, with nodeAddress.
func inNamespace() bool { return os.Getenv(insideVar) != "" }
