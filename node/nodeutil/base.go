// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"net"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/accessreview"
	"github.com/virtual-kubelet/virtual-kubelet/internal/objects"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// base has the parts that all nodes of a process share: the clients of the API server, the caches that do not belong to one node, and the
// kubelet's server.
type base struct {
	// Set by newBase, then constant.
	common     NodeConfig // NodeSpec is the initial spec of each node
	clients    *clients
	services   serviceInformer
	objects    *objects.Store
	hub        *eventHub // nil: the program has its own event recorder
	server     *server   // nil: none
	streams    *api.StreamLimits
	serving    *servingCertificate // nil: the server has its certificate from TLSConfig
	clientCert *clientCert         // nil: the program provides the credentials
	informers  []cache.SharedIndexInformer
}

// newBase completes cfg, connects, and sets up the parts without a provider. name is the name of the node;
// fromEnv is the client visible to options.
func newBase(name string, cfg NodeConfig, fromEnv kubernetes.Interface) (*base, error) {
	if err := cfg.complete(name); err != nil {
		return nil, err
	}
	b := &base{}
	var err error
	if cfg.bootstrap != nil {
		if b.clientCert, err = newClientCert(&cfg, name); err != nil {
			return nil, err
		}
	}
	if b.clients, err = connect(&cfg, fromEnv, b.clientCert); err != nil {
		return nil, err
	}
	cfg.Client = b.clients.main
	if b.serving, err = newServingCertificate(&cfg, b.clients.main, name); err != nil {
		return nil, err
	}
	if b.server, err = newServer(&cfg, b.clients.main, name); err != nil {
		return nil, err
	}
	if b.server != nil {
		completePort(&cfg.NodeSpec, cfg.HTTPListenAddr)
	}
	b.streams = api.NewStreamLimits(cfg.streamLimits())
	b.services = newServiceInformer(b.clients.watches, cfg.InformerResyncPeriod)
	// Not the client for writes: many reads at the start must not delay status updates.
	b.objects = objects.NewStore(b.clients.watches)
	b.objects.Behind(accessreview.New(b.clients.watches))
	b.informers = []cache.SharedIndexInformer{b.services.Informer()}
	if cfg.EventRecorder == nil {
		b.hub = &eventHub{}
	}
	b.common = cfg
	return b, nil
}

// configure applies opts to cfg.
func configure(cfg *NodeConfig, opts []NodeOpt) error {
	for _, opt := range opts {
		if err := opt(cfg); err != nil {
			return fmt.Errorf("apply option: %w", err)
		}
	}
	return nil
}

// listen opens the port of the server. It returns nil without a server.
func (b *base) listen(ctx context.Context) (net.Listener, error) {
	if b.server == nil {
		if (b.common.TLSConfig == nil) != (b.common.Handler == nil) { // if both are nil, no server is wanted
			log.G(ctx).Warn("The node has no server, so kubectl logs and exec do not work: set both TLSConfig and Handler")
		}
		return nil, nil
	}
	return b.server.listen(ctx)
}

// start adds the shared parts other than the nodes to p, once the node has credentials. Call the returned function, once, when these parts
// have ended.
func (b *base) start(p *parts, listener net.Listener) (stop func()) {
	if b.clientCert != nil {
		p.start("client certificate", b.clientCert.Run)
		select {
		case <-b.clientCert.Obtained():
		case <-p.ctx.Done():
		}
	}
	stop = func() {}
	if b.hub != nil {
		stop = b.hub.run(p.ctx, b.clients.events)
	}
	if b.serving != nil {
		p.start("serving certificate", b.serving.Run)
	}
	if listener != nil {
		p.start("server", func(ctx context.Context) error { return b.server.serve(ctx, listener) })
	}
	for _, informer := range b.informers {
		p.group.Go(func() error { informer.RunWithContext(p.ctx); return nil })
	}
	p.start("object store", b.objects.Run)
	return stop
}

// errNoProviderFunc is returned if NewNode or NewFleet gets no function.
var errNoProviderFunc = errors.New("no function to make the provider")
