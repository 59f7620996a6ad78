// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// session is one connection to the plugin, from the handshake to its end. It never reconnects.
type session struct {
	rpc.ProviderClient
	conn *grpc.ClientConn
	// ctx ends with the session; its cause is the reason of the end.
	ctx   context.Context //nolint:containedctx // the life of the session
	end   context.CancelCauseFunc
	hello *rpc.HandshakeResponse
}

// errNoAnswer is the error for a handshake that timed out.
var errNoAnswer = errors.New("the plugin did not answer the handshake in time: it is frozen, busy or another program")

// dialPlugin connects to the plugin and does the handshake.
func (p *plugin) dialPlugin(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	var refused atomic.Pointer[error] // the first error; gRPC would return it only as part of a text
	refuse := func(err error) { refused.CompareAndSwap(nil, &err) }
	creds := insecure.NewCredentials() // for a socket; its owner is checked
	if p.target.tls != nil {
		config, err := p.target.tls.loadFiles(time.Now())
		if err != nil {
			return nil, err
		}
		creds = explained{credentials.NewTLS(config), p.target.tls, refuse}
	}
	var dialed atomic.Bool
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithTransportCredentials(creds), grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("virtual-kubelet"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(p.config.MaxMessageBytes)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			if dialed.Swap(true) {
				return nil, errors.New("a session is one connection")
			}
			conn, err := p.target.dialTarget(ctx)
			if err != nil {
				refuse(err)
			}
			return conn, err
		}))
	if err != nil {
		return nil, err
	}
	s := &session{ProviderClient: rpc.NewProviderClient(conn), conn: conn}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	if err := s.checkHandshake(ctx, p); err != nil {
		s.close(err)
		if why := refused.Load(); why != nil {
			return nil, *why
		}
		return nil, err
	}
	return s, nil
}

// dialTarget connects to the plugin and checks the owner of its socket.
func (t target) dialTarget(ctx context.Context) (net.Conn, error) {
	if t.network != "unix" {
		return (&net.Dialer{}).DialContext(ctx, t.network, t.address)
	}
	if err := wire.CheckSocket(t.address); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", t.address)
	if err != nil {
		return nil, err
	}
	if err := wire.CheckPeer(conn.(*net.UnixConn)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (s *session) checkHandshake(ctx context.Context, p *plugin) error {
	hello, err := s.Handshake(ctx, &rpc.HandshakeRequest{
		ProtocolVersion: wire.ProtocolVersion, NodeName: p.nodeName, NodeJson: p.nodeJSON,
		Encodings:       []rpc.Encoding{rpc.Encoding_ENCODING_JSON, rpc.Encoding_ENCODING_PROTOBUF},
		MaxMessageBytes: int64(p.config.MaxMessageBytes),
	})
	switch {
	case wire.Unimplemented(err):
		return fmt.Errorf("the server does not speak virtualkubelet.provider.v1: it is another program, or a plugin for another version of the protocol (%s)", status.Convert(err).Message())
	case status.Code(err) == codes.DeadlineExceeded:
		return errNoAnswer
	case err != nil:
		kind, _ := wire.Decode(ctx, err, nil)
		return fmt.Errorf("handshake: %w", kind)
	case hello.GetProtocolVersion() != wire.ProtocolVersion:
		return fmt.Errorf("plugin %s speaks version %d of the protocol, this virtual-kubelet version %d: update the older of both",
			hello.GetName(), hello.GetProtocolVersion(), wire.ProtocolVersion)
	case hello.GetEncoding() != rpc.Encoding_ENCODING_JSON && hello.GetEncoding() != rpc.Encoding_ENCODING_PROTOBUF:
		return fmt.Errorf("plugin %s chose the encoding %v, which this virtual-kubelet does not know", hello.GetName(), hello.GetEncoding())
	}
	s.hello = hello
	return nil
}

// awaitBreak waits until the connection has broken or ctx has ended. The state Connecting after the handshake
// does not mean a broken connection, because gRPC sends calls before it reports Ready. A broken connection
// changes its state after a failed attempt to reconnect.
func (s *session) awaitBreak(ctx context.Context) error {
	for state := s.conn.GetState(); state == connectivity.Ready || state == connectivity.Connecting; state = s.conn.GetState() {
		if !s.conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
	return errors.New("the connection broke: the plugin has ended, or closed it")
}

func (s *session) close(why error) {
	s.end(why)
	_ = s.conn.Close() // fails only at a second Close
}
