// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/box"
	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/images"
)

// kubeletConfig is the configuration of a kubelet, for the comparison.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]s/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/kubelet.crt
tlsPrivateKeyFile: %[1]s/kubelet.key
containerRuntimeEndpoint: %[2]s
cgroupDriver: cgroupfs
cgroupRoot: %[4]s
cgroupsPerQOS: true
failCgroupV1: false
failSwapOn: false
clusterDNS: [` + dnsAddress + `]
clusterDomain: cluster.local
resolvConf: /etc/resolv.conf
podLogsDir: %[3]s/pods
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
serializeImagePulls: false
registerWithTaints: []
`

// startNodes makes the credentials of each node, starts its agent and returns when the nodes are ready.
func (c *Cluster) startNodes(ctx context.Context) error {
	for _, n := range c.nodes {
		credentials := filepath.Join(n.dir, "node")
		cmd := exec.CommandContext(ctx, c.Devcluster, "node-credentials", n.name, "--dir="+filepath.Join(c.Work, "control-plane"),
			"--name=conformance", "--out="+credentials, "--san="+n.address)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("make the credentials of node %s: %w: %s", n.name, err, out)
		}
		if err := c.startAgent(n, credentials); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := c.awaitAnswer(ctx, "node "+n.name, startTime, func() error {
			ready, err := c.runKubectl(ctx, "", "get", "node", n.name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
			if err == nil && strings.TrimSpace(ready) != "True" {
				err = fmt.Errorf("the node is not ready")
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startAgent(n *node, credentials string) error {
	switch c.Agent {
	case "kubelet":
		file := filepath.Join(n.dir, "kubelet.yaml")
		if err := writeFile(file, fmt.Sprintf(kubeletConfig, credentials, n.runtime.Endpoint(), n.dir, n.cgroup)); err != nil {
			return err
		}
		return c.startOn(n, "kubelet", filepath.Join(c.Programs, "kubelet"), "--config="+file, "--kubeconfig="+credentials+"/kubeconfig",
			"--hostname-override="+n.name, "--node-ip="+n.address, "--root-dir="+filepath.Join(n.dir, "kubelet"), "--cert-dir="+credentials)
	case "virtual-kubelet":
		return c.startVirtualKubelet(n, credentials)
	default:
		return fmt.Errorf("there is no agent %q; there are virtual-kubelet and kubelet", c.Agent)
	}
}

func (c *Cluster) startVirtualKubelet(n *node, credentials string) error {
	var config string
	switch c.Provider {
	case "cri":
		config = fmt.Sprintf(criConfig, n.runtime.Endpoint(), n.dir, n.cgroup)
	case "process":
		config = c.processConfig(n)
	default:
		return fmt.Errorf("there is no provider %q; there are cri and process", c.Provider)
	}
	file := filepath.Join(n.dir, "provider.yaml")
	if err := errors.Join(writeFile(file, config), writeFile(filepath.Join(n.dir, "pods.conflist"), fmt.Sprintf(processNetwork, n.dir, n.pods))); err != nil {
		return err
	}
	args := []string{
		"--provider=" + c.Provider, "--provider-config=" + file, "--kubeconfig=" + credentials + "/kubeconfig",
		"--nodename=" + n.name, "--node-ip=" + n.address, "--disable-taint", "--client-ca-file=" + credentials + "/ca.crt",
		"--tls-cert-file=" + credentials + "/kubelet.crt", "--tls-private-key-file=" + credentials + "/kubelet.key",
	}
	if c.Provider == "cri" {
		return c.startOn(n, "virtual-kubelet", c.VirtualKubelet, args...)
	}
	// The provider process makes the cgroups of pods below its own. A refused pod fails, so that no test waits
	// for it.
	dirs, err := box.Cgroups(n.cgroup)
	if err != nil {
		return err
	}
	return c.startOn(n, "virtual-kubelet", "sh", append([]string{"-c", enterCgroups, strings.Join(dirs, " "), c.VirtualKubelet, "--fail-unsupported"}, args...)...)
}

// enterCgroups starts the program in its arguments, in the cgroups with the directories in $0.
const enterCgroups = `for dir in $0; do echo $$ >"$dir/cgroup.procs" || exit 1; done; exec "$@"`

// criConfig allows the suite's pods as much as a kubelet allows: power over the machine, and all of its
// directories.
const criConfig = `apiVersion: cri.virtual-kubelet.io/v1alpha1
kind: CRIProviderConfiguration
endpoint: %[1]s
root: %[2]s/virtual-kubelet
logRoot: %[2]s/pods
clusterDNS: [` + dnsAddress + `]
cgroupParent: %[3]s
hostPaths: [/]
privileged: true
imageGC: {highThresholdPercent: 100}
`

func (c *Cluster) processConfig(n *node) string {
	config := fmt.Sprintf(processConfig, n.dir, c.Runtime)
	switch c.Network {
	case "own":
		return config
	case "machine":
		return config + "podNetwork: host\n"
	}
	return config + "podNetwork: " + n.dir + "/pods.conflist\n"
}

// processConfig allows the same.
const processConfig = `apiVersion: process.virtual-kubelet.io/v1alpha1
kind: ProcessProviderConfiguration
stateDir: %[1]s/virtual-kubelet
isolation: %[2]s
registryMirrors: {` + images.Registry + `: "http://` + mirror + `"}
# A test runs a registry there, in a pod.
insecureRegistries: ["localhost:5000"]
clusterDNS: [` + dnsAddress + `]
hostPaths: [/]
privileged: true
imageGC: {highThresholdPercent: 100}
`

// processNetwork is the network of pods, as in the containerd.
const processNetwork = `{
  "cniVersion": "1.0.0", "name": "pods",
  "plugins": [
    {"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
     "ipam": {"type": "host-local", "dataDir": "%[1]s/addresses", "ranges": [[{"subnet": "%[2]s"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`
