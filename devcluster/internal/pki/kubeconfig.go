// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig describes a kubeconfig with one cluster and one user. The certificates are inside the
// file, so it can be copied anywhere on this machine.
type Kubeconfig struct {
	Cluster string // the cluster's name, also the context's
	Server  string // the API server's URL
	User    string // the user's name inside the file
	CA      []byte // the authority that signed the API server's certificate, PEM
	Client  Pair   // the user's certificate and key
}

// Write writes the kubeconfig to path, readable by its owner only.
func (k Kubeconfig) Write(path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[k.Cluster] = &clientcmdapi.Cluster{Server: k.Server, CertificateAuthorityData: k.CA}
	config.AuthInfos[k.User] = &clientcmdapi.AuthInfo{ClientCertificateData: k.Client.Cert, ClientKeyData: k.Client.Key}
	config.Contexts[k.Cluster] = &clientcmdapi.Context{Cluster: k.Cluster, AuthInfo: k.User}
	config.CurrentContext = k.Cluster
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}

// Kubeconfig returns the kubeconfig of one of the cluster's own users, such as [Admin].
func (d Dir) Kubeconfig(cluster, server, user string) (Kubeconfig, error) {
	ca, err := os.ReadFile(d.Cert(ClusterCA))
	if err != nil {
		return Kubeconfig{}, fmt.Errorf("read certificate authority: %w", err)
	}
	pair, err := readPair(string(d), user)
	if err != nil {
		return Kubeconfig{}, err
	}
	return Kubeconfig{Cluster: cluster, Server: server, User: user, CA: ca, Client: pair}, nil
}

// Redirect points every kubeconfig below dir (dir/NODE/kubeconfig) at another server. A restarted
// cluster calls it because its port may have changed; no directory means no kubeconfigs.
func Redirect(dir, server string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list node credentials: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name(), NodeKubeconfig)
		config, err := clientcmd.LoadFromFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read kubeconfig %s: %w", path, err)
		}
		for _, c := range config.Clusters {
			c.Server = server
		}
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			return fmt.Errorf("write kubeconfig %s: %w", path, err)
		}
	}
	return nil
}
