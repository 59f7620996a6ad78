// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// ServiceIP is the address of the service "kubernetes": the first address of the service range.
const ServiceIP = "10.96.0.1"

// The names of the authorities and certificates; a file is NAME.crt or NAME.key.
const (
	ClusterCA         = "ca"                       // signs the certificates of the API server, of its clients and of nodes
	EtcdCA            = "etcd-ca"                  // signs only the two certificates of etcd
	FrontProxyCA      = "front-proxy-ca"           // signs the certificate that vouches for users of aggregated API servers
	APIServer         = "apiserver"                // the API server's serving certificate
	KubeletClient     = "apiserver-kubelet-client" // the API server's client certificate for nodes
	EtcdServer        = "etcd"                     // etcd's serving certificate, also for its members among each other
	EtcdClient        = "apiserver-etcd-client"    // the API server's client certificate for etcd
	FrontProxyClient  = "front-proxy-client"       // the API server's client certificate for aggregated API servers
	Admin             = "admin"                    // a user in group system:masters
	ControllerManager = "controller-manager"       // kube-controller-manager
	Scheduler         = "scheduler"                // kube-scheduler
	ServiceAccount    = "sa"                       // sa.key signs service account tokens, sa.pub checks them
)

// KubeletClientUser is the user name of the API server in its calls to nodes.
const KubeletClientUser = "kube-apiserver-kubelet-client"

var (
	clientAuth = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	serverAuth = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	bothAuth   = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

// Dir is the directory with a cluster's authorities, certificates and keys.
type Dir string

// Cert returns the path of the named certificate.
func (d Dir) Cert(name string) string { return filepath.Join(string(d), name+".crt") }

// Key returns the path of the named private key.
func (d Dir) Key(name string) string { return filepath.Join(string(d), name+".key") }

// PublicKey returns the path of the named public key; only [ServiceAccount] has one.
func (d Dir) PublicKey(name string) string { return filepath.Join(string(d), name+".pub") }

// Authority reads the named authority.
func (d Dir) Authority(name string) (*Authority, error) {
	pair, err := readPair(string(d), name)
	if err != nil {
		return nil, err
	}
	return ParseAuthority(pair)
}

// Ensure makes all certificates of a cluster unless the directory exists already, and reports whether it made
// them. It makes them beside the directory and moves them into place as a whole, so that a later start never
// trusts the remains of an interrupted one.
func (d Dir) Ensure() (made bool, err error) {
	if _, err := os.Stat(string(d)); err == nil {
		return false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look for certificates: %w", err)
	}
	draft, err := os.MkdirTemp(filepath.Dir(string(d)), ".pki-")
	if err != nil {
		return false, fmt.Errorf("make directory for certificates: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	if err := writeAll(draft); err != nil {
		return false, err
	}
	if err := os.Rename(draft, string(d)); err != nil {
		return false, fmt.Errorf("move certificates into place: %w", err)
	}
	return true, nil
}

// EnsureServes makes a new certificate for the API server if its certificate is not valid for ip: a cluster may
// use another address than at its last start.
func (d Dir) EnsureServes(ip net.IP) error {
	pair, err := readPair(string(d), APIServer)
	if err != nil {
		return err
	}
	parsed, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return fmt.Errorf("parse certificate %s: %w", d.Cert(APIServer), err)
	}
	if parsed.Leaf.VerifyHostname(ip.String()) == nil {
		return nil
	}
	authority, err := d.Authority(ClusterCA)
	if err != nil {
		return err
	}
	request := apiServer()
	request.IPs = append(request.IPs, ip)
	if pair, err = authority.Issue(request); err != nil {
		return err
	}
	return writePair(string(d), APIServer, pair)
}

func writeAll(dir string) error {
	authorities := map[string]*Authority{}
	for _, name := range []string{ClusterCA, EtcdCA, FrontProxyCA} {
		authority, err := NewAuthority("devcluster-" + name)
		if err != nil {
			return err
		}
		authorities[name] = authority
		if err := writePair(dir, name, authority.Pair()); err != nil {
			return err
		}
	}
	for _, l := range leaves() {
		pair, err := authorities[l.authority].Issue(l.request)
		if err != nil {
			return err
		}
		if err := writePair(dir, l.name, pair); err != nil {
			return err
		}
	}
	private, public, err := newSigningKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(Dir(dir).Key(ServiceAccount), private, 0o600); err != nil {
		return fmt.Errorf("write service account key: %w", err)
	}
	if err := os.WriteFile(Dir(dir).PublicKey(ServiceAccount), public, 0o644); err != nil {
		return fmt.Errorf("write service account public key: %w", err)
	}
	return nil
}

type leaf struct {
	authority, name string
	request         Request
}

func loopback() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} }

func apiServer() Request {
	return Request{
		CommonName: "kube-apiserver", Usages: serverAuth,
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		IPs: append([]net.IP{net.ParseIP(ServiceIP)}, loopback()...),
	}
}

func leaves() []leaf {
	return []leaf{
		{ClusterCA, APIServer, apiServer()},
		{ClusterCA, KubeletClient, Request{CommonName: KubeletClientUser, Usages: clientAuth}},
		{ClusterCA, Admin, Request{CommonName: "admin", Organizations: []string{"system:masters"}, Usages: clientAuth}},
		{ClusterCA, ControllerManager, Request{CommonName: "system:kube-controller-manager", Usages: clientAuth}},
		{ClusterCA, Scheduler, Request{CommonName: "system:kube-scheduler", Usages: clientAuth}},
		{FrontProxyCA, FrontProxyClient, Request{CommonName: "front-proxy-client", Usages: clientAuth}},
		{EtcdCA, EtcdServer, Request{CommonName: "etcd", Usages: bothAuth, DNSNames: []string{"localhost"}, IPs: loopback()}},
		{EtcdCA, EtcdClient, Request{CommonName: "kube-apiserver", Usages: clientAuth}},
	}
}
