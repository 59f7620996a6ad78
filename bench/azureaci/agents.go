// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const clusterName = "azureaci"

// cluster is a control plane without scheduler and controllers.
type cluster struct {
	program, base, kubeconfig string
	access                    *rest.Config // as an administrator
	client                    kubernetes.Interface
	process                   *exec.Cmd
	stdin                     io.Closer
}

func startCluster(ctx context.Context, bin, base string) (*cluster, error) {
	c := &cluster{program: filepath.Join(bin, "devcluster"), base: base, kubeconfig: filepath.Join(base, clusterName, "kubeconfig")}
	c.process = exec.Command(c.program, "up", "--dir="+base, "--name="+clusterName, "--keep=false", "--exit-with-stdin", "--progress-fd=3", //nolint:noctx // it is ended by stop
		"--controller-manager=false", "--scheduler=false")
	stdin, err := c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.stdin = stdin
	progress, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer progress.Close()
	c.process.ExtraFiles = []*os.File{theirs}
	err = c.process.Start()
	theirs.Close()
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.process.Process.Kill() })()
	ready := false
	for lines := bufio.NewScanner(progress); !ready && lines.Scan(); {
		ready = lines.Text() == "ready"
	}
	access, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err == nil && !ready {
		err = errors.New("the cluster does not start")
	}
	if err == nil {
		access.QPS = -1
		c.access = access
		c.client, err = kubernetes.NewForConfig(access)
	}
	if err != nil {
		c.stop()
	}
	return c, err
}

func (c *cluster) stop() {
	_ = c.stdin.Close() // ends the process
	_ = c.process.Wait()
}

// makeCredentials makes the credentials of a node, and returns their paths.
func (c *cluster) makeCredentials(ctx context.Context, name string) (string, error) {
	dir := filepath.Join(c.base, "nodes", name)
	out, err := exec.CommandContext(ctx, c.program, "node-credentials", name, "--dir="+c.base, "--name="+clusterName, "--out="+dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make credentials of node %s: %w: %s", name, err, out)
	}
	return dir, nil
}

// agent is the agent of a node.
type agent struct {
	title, node string
	port        int // its port; 0 is the port of the environment
	command     func(c config, k *cluster, a *cloud, dir, node string, port int) (*exec.Cmd, error)
}

// ownCommand returns the command of this project's program with provider aci.
func ownCommand(c config, k *cluster, a *cloud, dir, node string, port int) (*exec.Cmd, error) {
	file := filepath.Join(dir, "aci.yaml")
	text := fmt.Sprintf(`apiVersion: aci.virtual-kubelet.io/v1alpha1
kind: ACIProviderConfiguration
subscriptionID: %s
resourceGroup: %s
region: %s
clusterName: bench
cloud: {caFile: %s}
credentials: {tenantID: %s, clientID: %s, clientSecret: %s}
network: {vnet: %s, subnet: %s}
`, subscription, resourceGroup, region, a.caFile, tenant, clientID, secret, vnet, subnet)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(c.bin, "virtual-kubelet"), //nolint:noctx // it is ended by end
		"--kubeconfig", k.kubeconfig, "--nodename", node, "--provider", "aci", "--provider-config", file, "--node-ip", "127.0.0.1", "--listen-address", "127.0.0.1",
		"--port", strconv.Itoa(port), "--tls-cert-file", filepath.Join(dir, "kubelet.crt"), "--tls-private-key-file", filepath.Join(dir, "kubelet.key"),
		"--client-ca-file", filepath.Join(dir, "ca.crt"))
	cmd.Env = append(os.Environ(), "HTTPS_PROXY="+a.proxy, "NO_PROXY=127.0.0.1")
	return cmd, nil
}

// peerCommand returns the command of the published program azure-aci.
func peerCommand(c config, k *cluster, a *cloud, dir, node string, port int) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(c.bin, "azure-aci", "virtual-kubelet"), "--nodename", node) //nolint:noctx // it is ended by end
	cmd.Env = append(os.Environ(),
		"HTTPS_PROXY="+a.proxy, "NO_PROXY=127.0.0.1", "SSL_CERT_FILE="+a.caFile, "KUBECONFIG="+k.kubeconfig,
		"AZURE_TENANT_ID="+tenant, "AZURE_CLIENT_ID="+clientID, "AZURE_CLIENT_SECRET="+secret, "AZURE_SUBSCRIPTION_ID="+subscription,
		"ACI_RESOURCE_GROUP="+resourceGroup, "ACI_REGION="+region, "ACI_VNET_NAME="+vnet, "ACI_VNET_RESOURCE_GROUP="+resourceGroup,
		"ACI_VNET_SUBSCRIPTION_ID="+subscription, "ACI_SUBNET_NAME="+subnet, "ACI_SUBNET_CIDR=10.240.0.0/16", "MASTER_URI=https://10.0.0.1", "CLUSTER_CIDR=10.241.0.0/16",
		"KUBE_DNS_IP=10.0.0.10", "KUBELET_PORT="+strconv.Itoa(port), "VKUBELET_POD_IP=127.0.0.1",
		"APISERVER_CERT_LOCATION="+filepath.Join(dir, "kubelet.crt"), "APISERVER_KEY_LOCATION="+filepath.Join(dir, "kubelet.key"))
	return cmd, nil
}

// startAgent starts an agent, and keeps its log in a file.
func startAgent(cmd *exec.Cmd, log string) (ended <-chan struct{}, end func(), err error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		f.Close()
		return nil, nil, err
	}
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); f.Close(); close(over) }() // its log shows how it ended
	return over, func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-over:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-over
		}
	}, nil
}

// freePort returns a port without a listener.
func freePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
