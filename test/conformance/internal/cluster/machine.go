// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/box"
)

// node is a node of the cluster. Each node has its own network, directory and cgroup. The nodes share everything else.
type node struct {
	number        int
	name, address string
	pods          string // the pod CIDR of the node
	netns         string // the file of its network namespace; "" is the namespace of the box
	dir, cgroup   string
	runtime       *containerdtest.Containerd // nil with the provider process
}

// logName returns the name of the file with a program's output on the node.
func (n *node) logName(program string) string {
	if n.number == 0 {
		return program
	}
	return fmt.Sprintf("%s-%d", program, n.number)
}

// makeNodes prepares the machine for the nodes.
func (c *Cluster) makeNodes(ctx context.Context) error {
	for number, address := range []string{box.Address, box.SecondAddress}[:c.Nodes] {
		name := fmt.Sprintf("conformance-%d", number)
		n := &node{
			number: number, name: name, address: address, pods: fmt.Sprintf("10.97.%d.0/24", number),
			dir: filepath.Join(c.Work, name), cgroup: c.Cgroup + "/" + name,
		}
		// Users of a container's own user namespace must be able to enter the directory.
		if err := os.Mkdir(n.dir, 0o755); err != nil {
			return err
		}
		if err := box.MakeCgroup(n.cgroup); err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	if len(c.nodes) == 1 {
		return nil
	}
	first, second := c.nodes[0], c.nodes[1]
	var err error
	if second.netns, err = box.Machine(ctx, second.name, second.address); err != nil {
		return err
	}
	for _, argv := range [][]string{
		first.enterNetwork("ip", "route", "add", second.pods, "via", second.address),
		second.enterNetwork("ip", "route", "add", first.pods, "via", first.address),
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("join the networks of pods: %v: %w: %s", argv, err, out)
		}
	}
	return nil
}

// enterNetwork returns a command that runs argv in the network of the node.
func (n *node) enterNetwork(argv ...string) []string {
	if n.netns == "" {
		return argv
	}
	return append([]string{"nsenter", "--net=" + n.netns}, argv...)
}

// startOn starts a program of a node; it ends with the cluster.
func (c *Cluster) startOn(n *node, name, path string, args ...string) error {
	argv := n.enterNetwork(append([]string{path}, args...)...)
	_, err := c.start(n.logName(name), argv[0], argv[1:]...)
	return err
}
