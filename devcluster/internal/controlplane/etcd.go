// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/loopback"
	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/pki"
)

// etcdBindAttempts is the number of attempts with other ports: etcd opens its listeners itself, so another
// process may take a port between our choice and its bind.
const etcdBindAttempts = 10

// etcdServer is a running etcd.
type etcdServer struct {
	*embed.Etcd
	url string
}

// startEtcd starts a single member on free loopback ports and waits until it serves.
func startEtcd(ctx context.Context, o Options) (*etcdServer, error) {
	var err error
	for range etcdBindAttempts {
		var config *embed.Config
		if config, err = etcdConfig(o); err != nil {
			return nil, err
		}
		var etcd *embed.Etcd
		if etcd, err = embed.StartEtcd(config); errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("start etcd: %w", err)
		}
		select {
		case <-etcd.Server.ReadyNotify():
			return &etcdServer{etcd, config.AdvertiseClientUrls[0].String()}, nil
		case err = <-etcd.Err():
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		etcd.Close()
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	return nil, fmt.Errorf("start etcd: no free port in %d attempts: %w", etcdBindAttempts, err)
}

// run waits until etcd is told to end or ends on its own. It stops the member, which closes the database; its
// listeners end with the process, because closing them waits for clients.
func (e *etcdServer) run(ctx context.Context) error {
	defer e.Server.Stop()
	select {
	case err := <-e.Err():
		return err
	case <-e.Server.StopNotify():
		return errors.New("the server stopped")
	case <-ctx.Done():
		return nil
	}
}

func etcdConfig(o Options) (*embed.Config, error) {
	ports, err := loopback.FreePorts(2)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	client := url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	peer := url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	dir := o.Dir.PKI()
	tls := transport.TLSInfo{
		CertFile: dir.Cert(pki.EtcdServer), KeyFile: dir.Key(pki.EtcdServer),
		TrustedCAFile: dir.Cert(pki.EtcdCA), ClientCertAuth: true,
	}
	c := embed.NewConfig()
	c.Name = "default"
	c.Dir = o.Dir.Etcd()
	c.LogLevel = "error"
	c.LogOutputs = []string{o.Dir.Log()}
	c.UnsafeNoFsync = !o.Durable
	c.TickMs, c.ElectionMs = 20, 200 // a single member elects itself without waiting
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ClientTLSInfo, c.PeerTLSInfo = tls, tls
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// The API server compacts every five minutes; etcd does it too, for times without requests.
	c.AutoCompactionMode = "periodic"
	c.AutoCompactionRetention = "10m"
	return c, nil
}
