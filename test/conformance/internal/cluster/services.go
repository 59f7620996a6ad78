// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/box"
)

// dnsAddress is the address of the cluster's DNS for pods.
const dnsAddress = "10.96.0.10"

// CoreDNS runs on the machine and not in pods, so the service has no selector.
const dnsService = `apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  clusterIP: ` + dnsAddress + `
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
endpoints: [{addresses: ["` + box.Address + `"], conditions: {ready: true}}]
`

const corefile = `.:53 {
  bind ` + box.Address + `
  errors
  ready 127.0.0.1:8181
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig %s
    pods insecure
  }
}
`

// startServices starts kube-proxy on each node and, if it is wanted, CoreDNS.
func (c *Cluster) startServices(ctx context.Context) error {
	// The connection tracking table belongs to the whole machine, so its size is not changed.
	for _, n := range c.nodes {
		if err := c.startOn(n, "kube-proxy", filepath.Join(c.Programs, "kube-proxy"), "--kubeconfig="+c.Kubeconfig, "--hostname-override="+n.name,
			"--proxy-mode=iptables", "--cluster-cidr="+podNetwork, "--conntrack-max-per-core=0", "--conntrack-min=0",
			"--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"); err != nil {
			return err
		}
	}
	if _, err := c.runKubectl(ctx, dnsService, "apply", "-f", "-"); err != nil {
		return err
	}
	if !c.DNS {
		return nil
	}
	file := filepath.Join(c.Work, "Corefile")
	if err := writeFile(file, fmt.Sprintf(corefile, c.Kubeconfig)); err != nil {
		return err
	}
	_, err := c.start("coredns", filepath.Join(c.Programs, "coredns"), "-conf", file)
	return err
}
