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

// kubeletConfig is for the comparison with a kubelet.
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

// startNode makes the node's credentials, starts its agent and returns when the node is ready.
func (c *Cluster) startNode(ctx context.Context) error {
	credentials := filepath.Join(c.Work, "node")
	cmd := exec.CommandContext(ctx, c.Devcluster, "node-credentials", Node, "--dir="+filepath.Join(c.Work, "control-plane"),
		"--name=conformance", "--out="+credentials, "--san="+box.Address)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the node's credentials: %w: %s", err, out)
	}
	if err := c.startAgent(credentials); err != nil {
		return err
	}
	return c.await(ctx, "the node", startTime, func() error {
		ready, err := c.kubectl(ctx, "", "get", "node", Node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && strings.TrimSpace(ready) != "True" {
			err = fmt.Errorf("the node is not ready")
		}
		return err
	})
}

func (c *Cluster) startAgent(credentials string) error {
	switch c.Agent {
	case "kubelet":
		file := filepath.Join(c.Work, "kubelet.yaml")
		if err := writeFile(file, fmt.Sprintf(kubeletConfig, credentials, c.Endpoint, c.Work, c.Cgroup)); err != nil {
			return err
		}
		_, err := c.start("kubelet", filepath.Join(c.Programs, "kubelet"), "--config="+file, "--kubeconfig="+credentials+"/kubeconfig",
			"--hostname-override="+Node, "--node-ip="+box.Address, "--root-dir="+filepath.Join(c.Work, "kubelet"), "--cert-dir="+credentials)
		return err
	case "virtual-kubelet":
		return c.startVirtualKubelet(credentials)
	default:
		return fmt.Errorf("there is no agent %q; there are virtual-kubelet and kubelet", c.Agent)
	}
}

func (c *Cluster) startVirtualKubelet(credentials string) error {
	config, ok := map[string]string{
		"cri":     fmt.Sprintf(criConfig, c.Endpoint, c.Work, c.Cgroup),
		"process": c.processConfig(),
	}[c.Provider]
	if !ok {
		return fmt.Errorf("there is no provider %q; there are cri and process", c.Provider)
	}
	file := filepath.Join(c.Work, "provider.yaml")
	if err := errors.Join(writeFile(file, config), writeFile(filepath.Join(c.Work, "pods.conflist"), fmt.Sprintf(processNetwork, c.Work))); err != nil {
		return err
	}
	args := []string{
		"--provider=" + c.Provider, "--provider-config=" + file, "--kubeconfig=" + credentials + "/kubeconfig",
		"--nodename=" + Node, "--node-ip=" + box.Address, "--disable-taint", "--client-ca-file=" + credentials + "/ca.crt",
		"--tls-cert-file=" + credentials + "/kubelet.crt", "--tls-private-key-file=" + credentials + "/kubelet.key",
	}
	if c.Provider == "cri" {
		_, err := c.start("virtual-kubelet", c.VirtualKubelet, args...)
		return err
	}
	// The provider process makes the cgroups of pods below its own. A pod that it refuses fails, so that no test waits for it.
	dirs, err := box.Cgroups(c.Cgroup)
	if err != nil {
		return err
	}
	_, err = c.start("virtual-kubelet", "sh", append([]string{"-c", enterCgroups, strings.Join(dirs, " "), c.VirtualKubelet, "--fail-unsupported"}, args...)...)
	return err
}

// enterCgroups starts the program that its arguments name, in the cgroups whose directories are in $0.
const enterCgroups = `for dir in $0; do echo $$ >"$dir/cgroup.procs" || exit 1; done; exec "$@"`

// criConfig allows the suite's pods what a kubelet allows: power over the machine, and all of its directories.
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

func (c *Cluster) processConfig() string {
	config := fmt.Sprintf(processConfig, c.Work)
	if !c.MachineNetwork {
		config += "podNetwork: " + c.Work + "/pods.conflist\n"
	}
	return config
}

// processConfig allows the same.
const processConfig = `apiVersion: process.virtual-kubelet.io/v1alpha1
kind: ProcessProviderConfiguration
stateDir: %[1]s/virtual-kubelet
isolation: required
registryMirrors: {` + images.Registry + `: "http://` + mirror + `"}
clusterDNS: [` + dnsAddress + `]
hostPaths: [/]
privileged: true
ignoreSeccomp: true
imageGC: {highThresholdPercent: 100}
`

// processNetwork is the network that pods have in the containerd too.
const processNetwork = `{
  "cniVersion": "1.0.0", "name": "pods",
  "plugins": [
    {"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
     "ipam": {"type": "host-local", "dataDir": "%[1]s/addresses", "ranges": [[{"subnet": "` + podNetwork + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`
