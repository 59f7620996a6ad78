// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// stopGrace is the grace period for running calls when the plugin stops.
const stopGrace = 5 * time.Second

// Options configure how a plugin is served. Set either Socket or Address.
type Options struct {
	// Socket is the path of a unix socket. Serve creates it with the mode 0600, replaces a socket without a
	// listener, and removes the socket at the end. Only processes of the same user and of root can connect.
	Socket string
	// Address is a host:port to listen on instead. It needs TLS.
	Address string
	// TLS has the certificate of the plugin, and in ClientCAs the authorities for the certificates of nodes.
	// Serve always requires a certificate of the node, regardless of ClientAuth. Use GetCertificate for
	// certificates that change, and GetConfigForClient for authorities that change. The configuration from
	// GetConfigForClient needs ClientCAs, too.
	TLS *tls.Config
	// Name and Version are for logs and messages. Default: "plugin" and "".
	Name, Version string
	// MaxMessageBytes is the size limit of a message, such as a pod. Default 16 MiB.
	MaxMessageBytes int
	// Listening is called when nodes can connect. It may be nil.
	Listening func(net.Addr)
}

// Serve serves provider as a plugin until ctx ends, and then returns nil. It returns an error if it cannot
// listen, or if the provider fails.
//
// Serve finds the optional abilities of provider by type assertions: each method of nodeutil.Provider, and the
// optional interfaces listed by cli.Provider. Listers and event recorders of the node are not available to a
// plugin.
func Serve(ctx context.Context, provider node.PodLifecycleHandler, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	listener, err := o.openListener(ctx)
	if err != nil {
		return err
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	s := &server{provider: provider, options: o, instance: rand.Text(), reports: newReports(), nodes: newNodes(), lookups: newLookups()}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(o.MaxMessageBytes), grpc.MaxSendMsgSize(o.MaxMessageBytes), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	grpcServer := grpc.NewServer(options...)
	rpc.RegisterProviderServer(grpcServer, s)

	failed := make(chan error, 1)
	s.connectProvider(ctx)
	running := make(chan struct{})
	go func() {
		defer close(running)
		failed <- s.runBackground(ctx)
	}()
	served := make(chan error, 1)
	go func() { served <- grpcServer.Serve(listener) }()
	if o.Listening != nil {
		o.Listening(listener.Addr())
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	case err = <-served:
		served <- nil
	}
	cancel()
	s.reports.close()
	s.nodes.close()
	s.lookups.close()
	stop := time.AfterFunc(stopGrace, grpcServer.Stop)
	grpcServer.GracefulStop()
	stop.Stop()
	<-served //nolint:errcheck // Serve has stopped the server
	<-running
	return err
}

// withDefaults sets the defaults of o, and refuses invalid options.
func (o Options) withDefaults() (Options, error) {
	switch {
	case (o.Socket == "") == (o.Address == ""):
		return o, errdefs.InvalidInput("serve plugin: set one of Socket and Address")
	case o.Address != "" && (o.TLS == nil || o.TLS.ClientCAs == nil):
		return o, errdefs.InvalidInputf("serve plugin on %s: whoever reaches it controls the pods: set TLS, with ClientCAs", o.Address)
	case o.Socket != "" && o.TLS != nil:
		return o, errdefs.InvalidInputf("serve plugin on %s: a socket has no TLS: remove TLS, or set Address", o.Socket)
	case o.MaxMessageBytes < 0:
		return o, errdefs.InvalidInputf("serve plugin: MaxMessageBytes is %d, want 0 for the default, or more", o.MaxMessageBytes)
	}
	if o.TLS != nil {
		o.TLS = requireCertificates(o.TLS)
	}
	if o.Name == "" {
		o.Name = "plugin"
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = wire.DefaultMaxMessageBytes
	}
	return o, nil
}

// requireCertificates returns a copy of c that always requires certificates of nodes.
func requireCertificates(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	if choose := c.GetConfigForClient; choose != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			switch {
			case err != nil || chosen == nil: // nil: c itself
				return nil, err
			case chosen.ClientCAs == nil: // Go would then trust all authorities of the machine
				return nil, errors.New("serve plugin: GetConfigForClient returned a configuration without ClientCAs")
			}
			chosen = requireCertificates(chosen)
			chosen.NextProtos = []string{"h2"}
			return chosen, nil
		}
	}
	return c
}

// connectProvider connects the optional interfaces of the provider to the server.
func (s *server) connectProvider(ctx context.Context) {
	if p, ok := s.provider.(node.PodTokensUser); ok {
		p.UsePodTokens(s.lookups)
	}
	if p, ok := s.provider.(node.PullCredentialsUser); ok {
		p.UsePullCredentials(s.lookups)
	}
	if p, ok := s.provider.(node.PodObjectsUser); ok {
		p.UsePodObjects(s.lookups)
	}
	if p, ok := s.provider.(node.PodNotifier); ok {
		p.NotifyPods(ctx, s.reports.acceptReport)
	}
	if p, ok := s.provider.(node.NodeProvider); ok {
		p.NotifyNodeStatus(ctx, s.nodes.acceptNode)
	}
}

// runBackground runs the provider's background work until ctx ends.
func (s *server) runBackground(ctx context.Context) error {
	p, ok := s.provider.(node.BackgroundRunner)
	if !ok {
		<-ctx.Done()
		return nil
	}
	err := p.RunInBackground(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("serve plugin: background work of the provider: %w", err)
}
