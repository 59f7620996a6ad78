// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

// askGRPC calls the gRPC health service, version 1. Every error is a failure.
func (p *Prober) askGRPC(ctx context.Context, action *corev1.GRPCAction, t Target, timeout time.Duration) (outcome, string, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	address := net.JoinHostPort(addressOf(t), strconv.Itoa(int(action.Port)))
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithUserAgent("kube-probe/"+version),
		grpc.WithTransportCredentials(credentialsFor(action)),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return p.dialer.dialTarget(withTarget(ctx, t), "tcp", address)
		}))
	if err != nil {
		return failure, fmt.Sprintf("error: failed to connect service at %q: %+v", address, err), nil
	}
	defer conn.Close()
	if err := awaitConnection(bounded, conn); err != nil {
		return failure, fmt.Sprintf("timeout: failed to connect service %q within %v: %+v", address, timeout, err), nil
	}
	req := &grpc_health_v1.HealthCheckRequest{}
	if action.Service != nil {
		req.Service = *action.Service
	}
	resp, err := grpc_health_v1.NewHealthClient(conn).Check(bounded, req)
	if err != nil {
		return failure, refusalReason(err, timeout), nil
	}
	if s := resp.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return failure, fmt.Sprintf("service unhealthy (responded with %q)", s.String()), nil
	}
	return success, "service healthy", nil
}

func credentialsFor(action *corev1.GRPCAction) credentials.TransportCredentials {
	if action.Mode != nil && *action.Mode == corev1.GRPCProbeModeTLS {
		return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	return insecure.NewCredentials()
}

// awaitConnection waits for a connection until the timeout, because the server may not be listening yet.
func awaitConnection(ctx context.Context, conn *grpc.ClientConn) error {
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.Idle {
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
	return nil
}

// refusalReason returns the reason of a failed call.
func refusalReason(err error, timeout time.Duration) string {
	switch status.Code(err) {
	case codes.Unimplemented:
		return "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " + status.Convert(err).Message()
	case codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: health rpc did not complete within %v", timeout)
	default:
		return fmt.Sprintf("error: health rpc probe failed: %+v", err)
	}
}
