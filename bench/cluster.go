// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is a control plane as a child process.
type cluster struct {
	*process
	client  kubernetes.Interface // as an administrator, without limits
	watcher kubernetes.Interface // the same on a connection of its own, so that watches need not share it with requests
	program string
	base    string
	stdin   io.Closer // devcluster ends with this pipe, also if this program is killed
}

const (
	clusterName = "bench"
	protobuf    = "application/vnd.kubernetes.protobuf"
)

// startCluster starts a control plane with its files below base, and returns when it is ready. Scheduler and
// controller manager are off unless flags turn them on, because they would only use the machine.
func startCluster(ctx context.Context, cfg config, base string, flags ...string) (*cluster, error) {
	c := &cluster{program: filepath.Join(cfg.bin, "devcluster"), base: base}
	args := []string{"up", "--dir=" + base, "--name=" + clusterName, "--keep=false", "--exit-with-stdin", "--progress-fd=3",
		"--controller-manager=false", "--scheduler=false"}
	cmd := exec.Command(c.program, append(args, flags...)...) //nolint:noctx // it is ended by stop, gently
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	c.stdin = stdin
	progress, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer progress.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	c.process, err = startProgram("devcluster", cmd, cfg.logs)
	_ = theirs.Close() // otherwise the pipe would stay open after the end of the child
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if !saysReady(progress) {
		_ = cmd.Process.Kill() // the process has usually ended already
		return nil, c.endReason()
	}
	if err := c.makeClients(); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// saysReady reads devcluster's progress to the line "ready", and reports whether there was one.
func saysReady(progress io.Reader) bool {
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return true
		}
	}
	return false
}

func (c *cluster) makeClients() error {
	rest, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.base, clusterName, "kubeconfig"))
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	rest.QPS = -1
	rest.ContentType, rest.AcceptContentTypes = protobuf, protobuf+",application/json"
	if c.client, err = kubernetes.NewForConfig(rest); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	rest.NextProtos = []string{"http/1.1"} // one connection for each request in progress
	if c.watcher, err = kubernetes.NewForConfig(rest); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return nil
}

// credentials are the files of a node's kubelet API.
type credentials struct{ cert, key, rootCA string }

// makeCredentials makes the credentials of a node.
func (c *cluster) makeCredentials(ctx context.Context, node string) (credentials, error) {
	dir := filepath.Join(c.base, "nodes", node)
	cmd := exec.CommandContext(ctx, c.program, "node-credentials", node, "--dir="+c.base, "--name="+clusterName, "--out="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return credentials{}, fmt.Errorf("make credentials of node %s: %w: %s", node, err, out)
	}
	return credentials{
		cert:   filepath.Join(dir, "kubelet.crt"),
		key:    filepath.Join(dir, "kubelet.key"),
		rootCA: filepath.Join(dir, "ca.crt"),
	}, nil
}

// stop ends the cluster and deletes its data.
func (c *cluster) stop() {
	c.process.stop()
	_ = c.stdin.Close()
}
