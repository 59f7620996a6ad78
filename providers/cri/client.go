// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// callTime is the default timeout of a call.
	callTime = 2 * time.Minute
	// sandboxTime is the timeout for starting a sandbox, including its network.
	sandboxTime = 4 * time.Minute
	// maxMessage is the message limit. It is for lists of many containers: gRPC's default of 4 MiB suffices for
	// some 2000.
	maxMessage = 16 << 20
)

// sockets are the default sockets of runtimes. The first is used if none exists.
var sockets = []string{"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock"}

var (
	_ internalapi.RuntimeService      = (*Client)(nil)
	_ internalapi.ImageManagerService = (*Client)(nil)
)

// Client calls a container runtime. Its methods return the runtime's own errors; google.golang.org/grpc/status
// finds their kind. While the runtime is down, they return Unavailable at once; they work again as soon as it is
// up.
type Client struct {
	conn    *grpc.ClientConn
	runtime runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
}

// Connect returns a client of the runtime at the endpoint, in the form unix:///path; "" selects the first
// listening runtime of containerd, CRI-O and cri-dockerd on this machine. The runtime need not run yet.
func Connect(endpoint string) (*Client, error) {
	target, err := endpointTarget(endpoint)
	if err != nil {
		return nil, err
	}
	retry := backoff.DefaultConfig
	// Retry often, because an attempt on a local socket is cheap.
	retry.BaseDelay, retry.MaxDelay = 100*time.Millisecond, time.Second
	// Do not use keepalive: a runtime that dies closes its socket, the timeout of each call detects a runtime
	// that hangs, and servers disconnect clients that ping more often than every five minutes.
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithUnaryInterceptor(limitCall),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime at %s: %w", target, err)
	}
	return &Client{conn: conn, runtime: runtimeapi.NewRuntimeServiceClient(conn), images: runtimeapi.NewImageServiceClient(conn)}, nil
}

// endpointTarget returns the endpoint as a gRPC target.
func endpointTarget(endpoint string) (string, error) {
	if endpoint == "" {
		endpoint = firstExisting(sockets)
	}
	path := strings.TrimPrefix(endpoint, "unix://")
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("endpoint of the container runtime %q: want unix:// and the absolute path of a socket, such as unix://%s", endpoint, sockets[0])
	}
	return "unix://" + path, nil
}

// firstExisting returns the first existing path, or else the first path.
func firstExisting(paths []string) string {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return paths[0]
}

// limitCall is an interceptor that sets the timeout of a call.
func limitCall(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if d := callLimit(req); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

// callLimit returns the timeout of a call; 0 means none. It guards only against a hanging runtime, and is longer
// than any call needs, because the runtime may complete an operation after the timeout.
func callLimit(req any) time.Duration {
	switch r := req.(type) {
	case *runtimeapi.PullImageRequest:
		// An image may have any size, and the runtime itself ends a pull without progress.
		return 0
	case *runtimeapi.RunPodSandboxRequest:
		return sandboxTime
	case *runtimeapi.StopContainerRequest:
		return callTime + secondsOf(r.GetTimeout())
	case *runtimeapi.ExecSyncRequest:
		if r.GetTimeout() == 0 {
			return 0
		}
		return callTime + secondsOf(r.GetTimeout())
	case *runtimeapi.CheckpointContainerRequest:
		return callTime + secondsOf(r.GetTimeout())
	case *runtimeapi.CheckpointPodRequest, *runtimeapi.RestorePodRequest:
		return 0 // the caller knows the size of the pod
	default:
		return callTime
	}
}

// secondsOf returns a duration of n seconds, without overflow.
func secondsOf(n int64) time.Duration {
	const most = 1 << 32
	return time.Duration(min(max(n, 0), most)) * time.Second
}

// Close ends the connection; later calls fail.
func (c *Client) Close(context.Context) error {
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("close the connection to the container runtime: %w", err)
	}
	return nil
}
