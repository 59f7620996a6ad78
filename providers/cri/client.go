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
	// callTime bounds a call without a better limit.
	callTime = 2 * time.Minute
	// sandboxTime is for a sandbox, with its network.
	sandboxTime = 4 * time.Minute
	// maxMessage is for lists on nodes with many containers; gRPC's own 4 MiB end at some 2000 of them.
	maxMessage = 16 << 20
)

// sockets are the sockets of runtimes. The first is the default.
var sockets = []string{"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock"}

var (
	_ internalapi.RuntimeService      = (*Client)(nil)
	_ internalapi.ImageManagerService = (*Client)(nil)
)

// Client calls a container runtime. Its methods return the runtime's own errors; google.golang.org/grpc/status
// finds their kind. While the runtime is down they return Unavailable at once, and as soon as it is back they
// work again.
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
	// A try costs nothing on a socket of this machine.
	retry.BaseDelay, retry.MaxDelay = 100*time.Millisecond, time.Second
	// Use no keepalive: a runtime that dies closes its socket, the limit of each call handles a runtime that
	// hangs, and servers take a client with pings more often than every five minutes for an attacker.
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

// endpointTarget is the endpoint as gRPC wants it.
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

// firstExisting returns the first existing path, else the first path.
func firstExisting(paths []string) string {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return paths[0]
}

// limitCall makes a call with a time limit.
func limitCall(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if d := callLimit(req); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

// callLimit returns the time limit of a call; 0 means none. It guards against a hanging runtime, so it is longer
// than any runtime needs: an operation after a timeout here may still complete there.
func callLimit(req any) time.Duration {
	switch r := req.(type) {
	case *runtimeapi.PullImageRequest:
		// An image may be of any size, and runtimes themselves end a pull without progress.
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

// secondsOf is a number of seconds, without an overflow.
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
