// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
)

// The files of [Dir.WriteNode].
const (
	NodeKubeconfig  = "kubeconfig"  // client certificate inside
	NodeServingCert = "kubelet.crt" // the node's own HTTPS server
	NodeServingKey  = "kubelet.key" // its private key
	NodeCA          = "ca.crt"      // checks the certificates of the API server and of its clients
)

// Node describes the node of the credentials.
type Node struct {
	Name    string   // the Node object's name
	Cluster string   // the cluster's name, for the kubeconfig
	Server  string   // the API server's URL
	SANs    []string // further names and addresses of the node's HTTPS server
}

// WriteNode makes a node's credentials in dir: a kubeconfig for the user system:node:NAME in group system:nodes,
// which the Node authorizer and NodeRestriction know as that node, and a serving certificate for localhost, the
// loopback addresses, this host's name, the node's name and n.SANs. It replaces existing credentials.
func (d Dir) WriteNode(dir string, n Node) error {
	authority, err := d.Authority(ClusterCA)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make directory for credentials of node %s: %w", n.Name, err)
	}
	identity := Request{CommonName: "system:node:" + n.Name, Organizations: []string{"system:nodes"}}

	client := identity
	client.Usages = clientAuth
	clientPair, err := authority.Issue(client)
	if err != nil {
		return err
	}
	serving := identity
	serving.Usages = serverAuth
	serving.DNSNames, serving.IPs = servingNames(n)
	servingPair, err := authority.Issue(serving)
	if err != nil {
		return err
	}

	if err := writePair(dir, "kubelet", servingPair); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, NodeCA), authority.Pair().Cert, 0o644); err != nil {
		return fmt.Errorf("write certificate authority: %w", err)
	}
	kubeconfig := Kubeconfig{
		Cluster: n.Cluster, Server: n.Server, User: identity.CommonName, CA: authority.Pair().Cert, Client: clientPair,
	}
	return kubeconfig.Write(filepath.Join(dir, NodeKubeconfig))
}

// servingNames leaves this host's name out if the host has none: the certificate works without it.
func servingNames(n Node) (names []string, ips []net.IP) {
	all := []string{"localhost", "127.0.0.1", "::1", n.Name}
	if host, err := os.Hostname(); err == nil && host != "" {
		all = append(all, host)
	}
	for _, s := range append(all, n.SANs...) {
		if ip := net.ParseIP(s); ip != nil {
			ips = append(ips, ip)
		} else if !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names, ips
}
