// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	kubeletModule = "k8s.io/kubernetes"
	// kubeletPin is the folder of the module with the version of the kubelet.
	kubeletPin = "kubelet"
)

// kubeletConfig turns off the tasks of a kubelet for the machine rather than for pods, and lets the kubelet run
// with foreign cgroups. All other settings are the defaults.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]s}}
authorization: {mode: Webhook}
tlsCertFile: %[2]s
tlsPrivateKeyFile: %[3]s
address: 127.0.0.1
port: 0
healthzPort: 0
containerRuntimeEndpoint: %[4]s
cgroupDriver: cgroupfs
cgroupRoot: %[5]s
cgroupsPerQOS: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
failCgroupV1: false
failSwapOn: false
podLogsDir: %[6]s/logs
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
serializeImagePulls: false
`

// kubelet is a kubelet.
type kubelet struct {
	program, version string
}

// newKubelet builds the kubelet, if its version is not in the folder of programs already.
func newKubelet(ctx context.Context, cfg config) (agent, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-C", kubeletPin, "-m", "-f", "{{.Version}}", kubeletModule).Output()
	k := &kubelet{version: strings.TrimSpace(string(out))}
	if err != nil || k.version == "" {
		return nil, fmt.Errorf("find the kubelet: %w: %q; its module is downloaded by: go mod download -C bench/%s", err, out, kubeletPin)
	}
	if k.program, err = filepath.Abs(filepath.Join(cfg.bin, "kubelet-"+k.version)); err != nil {
		return nil, err
	}
	if _, err := os.Stat(k.program); err == nil {
		return k, nil
	}
	printProgress("building kubelet %s, once", k.version)
	ldflags := "-s -w -X k8s.io/component-base/version.gitVersion=" + k.version
	build := exec.CommandContext(ctx, "go", "build", "-C", kubeletPin, "-trimpath", "-ldflags="+ldflags, "-o", k.program, kubeletModule+"/cmd/kubelet")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the kubelet: %w: %s", err, out)
	}
	return k, nil
}

func (*kubelet) agentName() string { return "kubelet" }

func (k *kubelet) describeSettings() string {
	return "kubelet " + k.version + ", as it comes, without cgroups for QoS classes and without node allocatable"
}

func (k *kubelet) start(ctx context.Context, m *machine, _ scenario, prefix string) (*process, error) {
	creds, err := m.makeCredentials(ctx, prefix)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(m.base, "kubelet", prefix)
	file := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf(kubeletConfig, creds.rootCA, creds.cert, creds.key, m.containers.Endpoint(), m.containers.Cgroup(), dir)
	if err := writeConfig(file, text); err != nil {
		return nil, err
	}
	cmd := exec.Command(k.program, "--config="+file, "--kubeconfig="+m.kubeconfig, //nolint:noctx // it is ended by stop, gently
		"--hostname-override="+prefix, "--node-ip=127.0.0.1", "--root-dir="+dir, "--cert-dir="+dir)
	return m.startNodes(ctx, k.agentName(), cmd, []string{prefix})
}

// criConfig is the configuration of our provider for containers.
const criConfig = `apiVersion: cri.virtual-kubelet.io/v1alpha1
kind: CRIProviderConfiguration
endpoint: %[1]s
cgroupParent: %[2]s
root: %[3]s/root
logRoot: %[3]s/logs
imageGC: {highThresholdPercent: 100}
`

// criArgs returns the flags of virtual-kubelet with provider cri.
func (m *machine) criArgs(prefix string) ([]string, error) {
	dir := filepath.Join(m.base, "ours", prefix)
	file := filepath.Join(dir, "cri.yaml")
	err := writeConfig(file, fmt.Sprintf(criConfig, m.containers.Endpoint(), m.containers.Cgroup(), dir))
	return []string{"--provider=cri", "--provider-config=" + file}, err
}

func writeConfig(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}
