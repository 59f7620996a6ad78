// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/certificate"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certrequest"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// clientPrefix is the prefix of the certificate files in the directory, the same as a kubelet's.
const clientPrefix = "kubelet-client"

// WithTLSBootstrap gives the node its own identity, system:node:NAME in the group system:nodes. Run first requests a client certificate, by
// a CertificateSigningRequest to kubernetes.io/kube-apiserver-client-kubelet, with the credentials in the file bootstrapKubeconfig, such as
// a bootstrap token. It keeps the certificate and its key in dir, and writes the file KubeconfigPath with the names of both. Later the node
// renews the certificate with the certificate itself, when 70 to 90 % of its life have passed. It uses bootstrapKubeconfig again only if
// the certificate has ended.
//
// If KubeconfigPath exists, its server and its client certificate are used, and bootstrapKubeconfig need not exist. The option cannot be
// combined with a Client, and not used for a Fleet.
func WithTLSBootstrap(bootstrapKubeconfig, dir string) NodeOpt {
	return func(cfg *NodeConfig) error {
		if bootstrapKubeconfig == "" || dir == "" {
			return errors.New("WithTLSBootstrap: want a kubeconfig to bootstrap with, and a directory for certificates")
		}
		cfg.bootstrap = &bootstrap{kubeconfig: bootstrapKubeconfig, dir: dir}
		return nil
	}
}

// clientCert is the client certificate of the node.
type clientCert struct {
	*certrequest.Manager
	notices    *certNotices
	own        kubernetes.Interface // with the credentials of the node
	config     *rest.Config         // of all clients of the node
	cluster    *clientcmdapi.Cluster
	bootstrap  string
	kubeconfig string
}

// newClientCert returns the certificate for cfg, and the configuration for clients.
func newClientCert(cfg *NodeConfig, name string) (*clientCert, error) {
	b := cfg.bootstrap
	if cfg.KubeconfigPath == "" {
		return nil, errors.New("WithTLSBootstrap: KubeconfigPath, the file to write, is not set")
	}
	store, err := certrequest.InFiles(b.dir, clientPrefix)
	if err != nil {
		return nil, err
	}
	config, cluster, user, err := readCluster(cfg.KubeconfigPath)
	switch {
	case err == nil:
		if err := adopt(store, user); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", cfg.KubeconfigPath, err)
		}
	case errors.Is(err, fs.ErrNotExist):
		if config, cluster, _, err = readCluster(b.kubeconfig); err != nil {
			return nil, fmt.Errorf("kubeconfig %s does not exist, and the one to bootstrap with is of no use: %w", cfg.KubeconfigPath, err)
		}
	default:
		return nil, err
	}
	if config.CertFile, err = filepath.Abs(store.CurrentPath()); err != nil {
		return nil, err
	}
	config.KeyFile = config.CertFile
	c := &clientCert{config: config, cluster: cluster, bootstrap: b.kubeconfig, kubeconfig: cfg.KubeconfigPath, notices: &certNotices{
		what: "client", kind: ClientCertificatePending, without: "the node does nothing",
	}}
	c.Manager, err = certrequest.New(certrequest.Config{
		Signer: certificatesv1.KubeAPIServerClientKubeletSignerName, Usages: certrequest.ClientUsages,
		Template: func() *x509.CertificateRequest { return certrequest.ClientTemplate(name) },
		Client:   c.client, Store: store, Tell: c.tell, Metrics: certrequest.Client,
		Renew: cfg.renewCertificate,
	})
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	return c, nil
}

// client returns the client that requests the certificate.
func (c *clientCert) client(hasCurrent bool) (kubernetes.Interface, error) {
	if hasCurrent {
		return c.own, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.bootstrap) // read each time, because the token may have been replaced
	if err != nil {
		return nil, fmt.Errorf("there is no valid client certificate, and the kubeconfig to bootstrap with cannot be used: %w", err)
	}
	return kubernetes.NewForConfig(config)
}

func (c *clientCert) tell(ctx context.Context, s certrequest.State) {
	c.notices.tell(ctx, s)
	if s.Reason != certrequest.Granted {
		return
	}
	if err := saveKubeconfig(c.kubeconfig, c.cluster, c.config.CertFile); err != nil {
		log.G(ctx).WithError(err).Warn("The kubeconfig of the node cannot be written; the next start has to read the server's address from the one to bootstrap with")
	}
}

// readCluster returns the API server of a kubeconfig, without credentials, and the user of the kubeconfig.
func readCluster(path string) (*rest.Config, *clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	raw, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	if err := clientcmd.ResolveLocalPaths(raw); err != nil {
		return nil, nil, nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	user, cluster := &clientcmdapi.AuthInfo{}, &clientcmdapi.Cluster{}
	if current := raw.Contexts[raw.CurrentContext]; current != nil {
		if u := raw.AuthInfos[current.AuthInfo]; u != nil {
			user, raw.AuthInfos[current.AuthInfo] = u, &clientcmdapi.AuthInfo{}
		}
		if c := raw.Clusters[current.Cluster]; c != nil {
			cluster = c
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("use kubeconfig %s: %w", path, err)
	}
	return config, cluster, user, nil
}

// adopt copies the client certificate of a kubeconfig that another program wrote into the store, if the store has no certificate or one
// that expires earlier. From then on the node renews it.
func adopt(store certificate.FileStore, user *clientcmdapi.AuthInfo) error {
	certPEM, keyPEM := user.ClientCertificateData, user.ClientKeyData
	if len(certPEM) == 0 && user.ClientCertificate == "" {
		return errors.New("it has no client certificate, which is what WithTLSBootstrap is about; remove it to have it written anew")
	}
	var err error
	if len(certPEM) == 0 {
		if certPEM, err = os.ReadFile(user.ClientCertificate); err == nil {
			keyPEM, err = os.ReadFile(user.ClientKey)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the node requests a missing certificate
	}
	if err != nil {
		return fmt.Errorf("read its client certificate: %w", err)
	}
	given, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("its client certificate: %w", err)
	}
	if kept, err := store.Current(); err == nil && !given.Leaf.NotAfter.After(kept.Leaf.NotAfter) {
		return nil
	}
	_, err = store.Update(certPEM, keyPEM)
	return err
}

// saveKubeconfig atomically writes a kubeconfig for the cluster that refers to the certificate and key in certFile.
func saveKubeconfig(path string, cluster *clientcmdapi.Cluster, certFile string) error {
	const name = "default"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = cluster.DeepCopy()
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificate: certFile, ClientKey: certFile}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	text, err := clientcmd.Write(*c)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if there, err := os.ReadFile(path); err == nil && string(there) == string(text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-") // readable only by the owner
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		_ = os.Remove(draft.Name())
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
