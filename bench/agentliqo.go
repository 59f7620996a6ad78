// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// onLiqo is an agent whose pods run in a second cluster, where Liqo's own controllers make them from ShadowPods:
// this project's agent with provider liqo, or Liqo's own virtual kubelet.
type onLiqo struct {
	*ours
	folder string // of Liqo's programs and definitions
	theirs bool
}

func newOnLiqo(o *ours, cfg config, name string) (agent, error) {
	a := onLiqo{o, filepath.Join(cfg.bin, "liqo"), name == "liqo-vk"}
	o.as = name
	for _, program := range []string{"liqo-controller-manager", "virtual-kubelet"} {
		if _, err := os.Stat(filepath.Join(a.folder, program)); err != nil {
			return nil, fmt.Errorf("%s needs Liqo's programs, which make bench-liqo builds: %w", name, err)
		}
	}
	return a, nil
}

func (a onLiqo) describeSettings() string {
	if a.theirs {
		return "Liqo's virtual kubelet v1.0.1, with tokens of the home cluster and without its network, all else by default; liqo-controller-manager v1.0.1 in the lower cluster"
	}
	return "virtual-kubelet --provider=liqo, all else by default; the same controllers, scheduler and node of provider mock in the lower cluster"
}

// liqoConfig is the configuration of provider liqo.
const liqoConfig = `apiVersion: liqo.virtual-kubelet.io/v1alpha1
kind: LiqoProviderConfiguration
kubeconfig: %[1]s
clusterName: home
foreignClusterID: foreign
namespaces: {%[2]s: %[2]s}
placement: {tolerations: [{operator: Exists}]}
capacity: {cpu: 1k, memory: 1Ti, pods: 1M}
`

func (a onLiqo) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	base := filepath.Join(m.base, "lower", prefix)
	low, err := onRemote{a.ours}.startLower(ctx, m, base, prefix, "--controller-manager=true") // its garbage collector removes the pods of ShadowPods
	if err != nil {
		return nil, fmt.Errorf("start the lower cluster: %w", err)
	}
	node, err := a.startAbove(ctx, m, s, low, base, prefix)
	if err != nil {
		low.stop()
		return nil, err
	}
	node.lower, node.stopped = low, low.stop
	return node, nil
}

// startAbove starts Liqo's controllers on the lower cluster, and then the agent.
func (a onLiqo) startAbove(ctx context.Context, m *machine, s scenario, low *lower, base, prefix string) (*process, error) {
	admin := filepath.Join(base, clusterName, "kubeconfig")
	if err := a.defineKinds(ctx, admin); err != nil {
		return nil, fmt.Errorf("of the lower cluster: %w", err)
	}
	controllers := exec.Command(filepath.Join(a.folder, "liqo-controller-manager"), "--networking-enabled=false", "--authentication-enabled=false", //nolint:noctx // it is ended by stop, gently
		"--offloading-enabled=true", "--cluster-id=foreign", "--default-limits-enforcement=None", "--metrics-address=127.0.0.1:0",
		"--health-probe-address=127.0.0.1:0")
	controllers.Env = append(controllers.Environ(), "KUBECONFIG="+admin)
	var err error
	if low.controllers, err = startProgram("liqo-controller-manager", controllers, m.cfg.logs); err != nil {
		return nil, err
	}
	if a.theirs {
		return a.startTheirs(ctx, m, low, prefix)
	}
	file := filepath.Join(base, "liqo.yaml")
	if err := writeConfig(file, fmt.Sprintf(liqoConfig, low.kubeconfig, prefix)); err != nil {
		return nil, err
	}
	return a.startWith(ctx, m, s, prefix, []string{"--provider=liqo", "--provider-config=" + file})
}

// startTheirs starts Liqo's own virtual kubelet, with the objects that peering and offloading would have made in
// the first cluster.
func (a onLiqo) startTheirs(ctx context.Context, m *machine, low *lower, prefix string) (*process, error) {
	admin := filepath.Join(m.base, clusterName, "kubeconfig")
	if err := a.defineKinds(ctx, admin); err != nil {
		return nil, fmt.Errorf("of the upper cluster: %w", err)
	}
	access, err := os.ReadFile(low.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	tenant := prefix + "-tenant"
	if err := makeTenant(ctx, m, admin, tenant, prefix, access); err != nil {
		return nil, err
	}
	kubelet, err := freePort()
	if err != nil {
		return nil, err
	}
	home, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(home.Host, "https://"))
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	cmd := exec.Command(filepath.Join(a.folder, "virtual-kubelet"), "--home-kubeconfig="+m.kubeconfig, "--foreign-kubeconfig-secret-name="+secretOfTenant, //nolint:noctx // it is ended by stop, gently
		"--nodename="+prefix, "--tenant-namespace="+tenant, "--liqo-namespace="+tenant, "--home-cluster-id=home", "--foreign-cluster-id=foreign",
		"--disable-ip-reflection", "--node-ip=127.0.0.1", "--certificate-type=self-signed", "--listen-port="+strconv.Itoa(kubelet),
		"--node-check-network=false", "--enable-apiserver-support", "--home-api-server-host="+host, "--home-api-server-port="+port)
	cmd.Env = append(cmd.Environ(), "POD_NAME="+prefix, "POD_NAMESPACE="+tenant, "VIRTUALNODE_NAME="+prefix)
	return m.startNodes(ctx, a.agentName(), cmd, []string{prefix})
}

// freePort returns a port of this machine without a listener.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
