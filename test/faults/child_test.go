// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
	"github.com/virtual-kubelet/virtual-kubelet/test/internal/testnode"
)

// These variables turn this test binary into a daemon with few file descriptors.
const (
	childNode       = "VK_FAULTS_CHILD_NODE"
	childKubeconfig = "VK_FAULTS_CHILD_KUBECONFIG"
	childCert       = "VK_FAULTS_CHILD_CERT"
	childKey        = "VK_FAULTS_CHILD_KEY"
	childFiles      = "VK_FAULTS_CHILD_FILES"
)

// runChild runs the daemon until it is killed or its standard input ends.
func runChild() error {
	files, err := strconv.ParseUint(os.Getenv(childFiles), 10, 32)
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: files, Max: files}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	w := &world{backend: memory.New(), calls: &calls{}}
	n, err := nodeutil.NewNode(os.Getenv(childNode), w.newProvider, testnode.Roomy,
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(os.Getenv(childCert), os.Getenv(childKey))),
		nodeutil.WithInsecureUnauthenticatedServer(),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.KubeconfigPath = os.Getenv(childKubeconfig)
			cfg.HTTPListenAddr = "127.0.0.1:0"
			cfg.Handler = http.NotFoundHandler()
			return nil
		})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = os.Stdin.Read(make([]byte, 1)) // the parent ended
	}()
	return n.Run(ctx)
}

// startChild runs the world's node in a process of its own that may open the given number of files. It returns
// the address of the process's server, and a function that counts its open files.
func (w *world) startChild(files int) (address string, open func() int) {
	w.Helper()
	kubeconfig, err := w.proxy.Kubeconfig(w.TempDir())
	if err != nil {
		w.Fatal(err)
	}
	credentials := w.api.NodeCredentials(w.T, w.nodeName)
	cmd := exec.Command(os.Args[0]) // it ends with its standard input, after the test's context
	cmd.Env = append(os.Environ(), childNode+"="+w.nodeName, childKubeconfig+"="+kubeconfig,
		childCert+"="+credentials.CertFile, childKey+"="+credentials.KeyFile, fmt.Sprintf("%s=%d", childFiles, files))
	said := &testlog.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // it was ended by a signal
		if w.Failed() {
			w.Logf("the daemon with %d files said:\n%s", files, said.Tail())
		}
	})
	node := w.nodes.awaitOne(w.T, "the node is ready", nodeReady)
	open = func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		if err != nil {
			w.Skipf("this system does not tell how many files a process has open: %v", err)
		}
		return len(entries)
	}
	return fmt.Sprintf("127.0.0.1:%d", node.Status.DaemonEndpoints.KubeletEndpoint.Port), open
}

// childMain is called before the tests. In a child process it never returns.
func childMain() {
	if os.Getenv(childNode) == "" {
		return
	}
	if err := runChild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
