// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a whole cluster of one node, or of two, on one machine: control plane, a registry, DNS, and for each node a
// container runtime, a network for pods, a proxy for services, and its agent. It is meant for a box (see package box), so that all its
// changes of the machine end with the box.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/box"
	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/images"
)

// Node is the name of the first node.
const Node = "conformance-0"

const (
	podNetwork = "10.97.0.0/16"
	mirror     = box.Address + ":5055"
	// startTime bounds each wait during the start. It is long enough for a busy machine.
	startTime = 2 * time.Minute
)

// Options are the options of a cluster.
type Options struct {
	// Work is an empty directory for all files of the cluster except the logs of its programs, which go to Logs.
	Work, Logs string
	// Cgroup is the existing cgroup for all nodes.
	Cgroup string
	// Nodes is the number of nodes: 1, or 2.
	Nodes int
	// Devcluster is the program of the control plane. Programs is the directory of all other programs.
	Devcluster, Programs string
	// Images are the images of the registry, by name and tag.
	Images images.Programs
	// Agent is the node's agent: "virtual-kubelet" or "kubelet".
	Agent string
	// Provider is the provider of virtual-kubelet: "cri", with a containerd, or "process".
	Provider string
	// Runtime is the container runtime of the provider process: "gvisor" or "runc".
	Runtime string
	// Network is the network of pods of the provider process: pods (CNI plugins), own (the provider's network) or machine.
	Network string
	// VirtualKubelet is the path of the program virtual-kubelet.
	VirtualKubelet string
	// DNS runs CoreDNS. Most tests of nodes do not need it, and it takes minutes to build.
	DNS bool
	// Say is called with messages about the progress.
	Say func(format string, args ...any)
}

// Cluster is a running cluster.
type Cluster struct {
	Options
	// Kubeconfig is the administrator's kubeconfig. Kubectl is a program that uses it.
	Kubeconfig, Kubectl string
	// Endpoint is the address of the first node's container runtime; "" if there is none.
	Endpoint string

	nodes    []*node
	programs []*program // in the order of their start
}

// Start starts a cluster and returns when pods can run in it.
func Start(ctx context.Context, o Options) (c *Cluster, err error) {
	c = &Cluster{Options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"machines", c.makeNodes},
		{"images and container runtimes", c.startRuntimes},
		{"control plane", c.startControlPlane},
		{"services", c.startServices},
		{"nodes", c.startNodes},
	} {
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return c, fmt.Errorf("start the %s: %w", step.name, err)
		}
		c.Say("%s: %.1f s", step.name, time.Since(began).Seconds())
	}
	return c, nil
}

// Stop stops the programs that Start started, in reverse order. It does not stop container runtimes: their containers end with the
// box.
func (c *Cluster) Stop() error {
	var errs []error
	for _, p := range slices.Backward(c.programs) {
		errs = append(errs, p.stop())
	}
	c.programs = nil
	for _, n := range c.nodes {
		if n.runtime != nil {
			errs = append(errs, os.WriteFile(filepath.Join(c.Logs, n.logName("containerd")+".log"), []byte(n.runtime.Said()), 0o600))
		}
	}
	return errors.Join(errs...)
}

// startRuntimes starts a containerd for each node, with the mirror as its registry, and pulls every image once,
// so that no test pays for the first pull. The provider process needs the mirror only.
func (c *Cluster) startRuntimes(ctx context.Context) error {
	all, err := images.All(c.Images)
	if err != nil {
		return err
	}
	if err := images.Serve(ctx, mirror, all); err != nil {
		return err
	}
	if c.Provider == "process" {
		return nil
	}
	registries := filepath.Join(c.Work, "registries")
	hosts := fmt.Sprintf("server = \"http://%s\"\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", mirror, mirror)
	if err := writeFile(filepath.Join(registries, images.Registry, "hosts.toml"), hosts); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if n.runtime, err = containerdtest.New(ctx, containerdtest.Options{
			Bridge: "pods0", Subnet: n.pods, Registries: registries, CgroupParent: n.cgroup + "/containerd", NetworkNamespace: n.netns,
		}); err != nil {
			return err
		}
		if err := c.pullImages(ctx, n, all); err != nil {
			return err
		}
	}
	c.Endpoint = c.nodes[0].runtime.Endpoint()
	return nil
}

func (c *Cluster) startControlPlane(ctx context.Context) error {
	resolver := filepath.Join(c.Work, "resolv.conf")
	if err := writeFile(resolver, "nameserver "+box.Address+"\n"); err != nil {
		return err
	}
	if err := box.Resolver(resolver); err != nil {
		return err
	}
	c.Kubectl = filepath.Join(c.Work, "kubectl")
	if err := os.Symlink(c.Devcluster, c.Kubectl); err != nil {
		return err
	}
	dir := filepath.Join(c.Work, "control-plane")
	_, err := c.start("control-plane", c.Devcluster, "up", "--dir="+dir, "--name=conformance", "--address="+box.Address, "--port=6443")
	if err != nil {
		return err
	}
	c.Kubeconfig = filepath.Join(dir, "conformance", "kubeconfig")
	return c.awaitAnswer(ctx, "the control plane", startTime, func() error {
		_, err := c.runKubectl(ctx, "", "get", "serviceaccount", "default")
		return err
	})
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(content), 0o600)
}
