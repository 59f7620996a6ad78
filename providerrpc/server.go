// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// encoding is the encoding of Kubernetes objects.
const encoding = rpc.Encoding_ENCODING_PROTOBUF

// listChunkBytes is the approximate size of a message of a list.
const listChunkBytes = 256 << 10

// server implements the plugin service with a provider.
type server struct {
	rpc.UnimplementedProviderServer
	provider node.PodLifecycleHandler
	options  Options
	instance string
	reports  *reports
	nodes    *nodes
	lookups  *lookups
}

// callError returns err as a gRPC error, and sets the trailer of the call.
func callError(ctx context.Context, err error, complete bool) error {
	err, trailer := wire.Encode(err, complete)
	if trailer != nil {
		_ = grpc.SetTrailer(ctx, trailer) // fails only outside of a call
	}
	return err
}

// lackError returns the error for a method that the provider does not implement.
func lackError(method string) error {
	return status.Errorf(codes.Unimplemented, "the provider of the plugin has no method %s", method)
}

// isComplete reports whether the provider knows that its answers are complete. Call it before the call whose
// answer it is about.
func (s *server) isComplete() bool {
	p, ok := s.provider.(node.PodAuthority)
	return ok && p.AnswersForAllPods()
}

// Alive answers at once.
func (s *server) Alive(context.Context, *rpc.AliveRequest) (*rpc.AliveResponse, error) {
	return &rpc.AliveResponse{Complete: s.isComplete()}, nil
}

// Ping calls the provider.
func (s *server) Ping(ctx context.Context, _ *rpc.PingRequest) (*rpc.PingResponse, error) {
	p, ok := s.provider.(node.NodeProvider)
	if !ok {
		return nil, lackError("Ping")
	}
	return &rpc.PingResponse{}, callError(ctx, p.Ping(ctx), false)
}

// withPod calls f with the pod in req.
func withPod(ctx context.Context, req *rpc.PodRequest, f func(context.Context, *corev1.Pod) error) (*rpc.PodDone, error) {
	pod := &corev1.Pod{}
	if err := wire.Unmarshal(encoding, req.GetPod(), pod); err != nil {
		return nil, callError(ctx, fmt.Errorf("decode the pod: %w", err), false)
	}
	return &rpc.PodDone{}, callError(ctx, f(ctx, pod), false)
}

// CreatePod calls the provider. The declaration that the node gets has only whole features, so the server itself
// refuses pods with fields that the provider does not support.
func (s *server) CreatePod(ctx context.Context, req *rpc.PodRequest) (*rpc.PodDone, error) {
	return withPod(ctx, req, func(ctx context.Context, pod *corev1.Pod) error {
		if p, ok := s.provider.(capability.Declarer); ok {
			if lacking := p.Capabilities().Check(pod); len(lacking) > 0 {
				return errdefs.InvalidInput(capability.Message(lacking))
			}
		}
		return s.provider.CreatePod(ctx, pod)
	})
}

// UpdatePod calls the provider.
func (s *server) UpdatePod(ctx context.Context, req *rpc.PodRequest) (*rpc.PodDone, error) {
	return withPod(ctx, req, s.provider.UpdatePod)
}

// DeletePod calls the provider.
func (s *server) DeletePod(ctx context.Context, req *rpc.PodRequest) (*rpc.PodDone, error) {
	return withPod(ctx, req, s.provider.DeletePod)
}

// GetPod calls the provider. A nil pod means not-found.
func (s *server) GetPod(ctx context.Context, req *rpc.PodName) (*rpc.PodAnswer, error) {
	complete := s.isComplete()
	pod, err := s.provider.GetPod(ctx, req.GetNamespace(), req.GetName())
	if err == nil && pod == nil {
		err = errdefs.NotFoundf("pod %s/%s is not here", req.GetNamespace(), req.GetName())
	}
	if err != nil {
		return nil, callError(ctx, err, complete)
	}
	encoded, err := wire.Marshal(encoding, pod)
	return &rpc.PodAnswer{Pod: encoded}, callError(ctx, err, false)
}

// GetPodStatus calls the provider. A nil status means not-found.
func (s *server) GetPodStatus(ctx context.Context, req *rpc.PodName) (*rpc.StatusAnswer, error) {
	complete := s.isComplete()
	got, err := s.provider.GetPodStatus(ctx, req.GetNamespace(), req.GetName())
	if err == nil && got == nil {
		err = errdefs.NotFoundf("pod %s/%s is not here", req.GetNamespace(), req.GetName())
	}
	if err != nil {
		return nil, callError(ctx, err, complete)
	}
	encoded, err := wire.Marshal(encoding, got)
	return &rpc.StatusAnswer{Status: encoded}, callError(ctx, err, false)
}

// GetPods calls the provider, and sends the pods in chunks.
func (s *server) GetPods(_ *rpc.GetPodsRequest, stream rpc.Provider_GetPodsServer) error {
	ctx := stream.Context()
	complete := s.isComplete()
	pods, err := s.provider.GetPods(ctx)
	if err != nil {
		return failStream(stream, err, false)
	}
	chunk, size := &rpc.PodsAnswer{}, 0
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		encoded, err := wire.Marshal(encoding, pod)
		if err != nil {
			return failStream(stream, fmt.Errorf("encode pod %s/%s: %w", pod.Namespace, pod.Name, err), false)
		}
		if size > 0 && size+len(encoded) > listChunkBytes {
			if err := stream.Send(chunk); err != nil {
				return err
			}
			chunk, size = &rpc.PodsAnswer{}, 0
		}
		chunk.Pods = append(chunk.Pods, encoded)
		size += len(encoded)
	}
	chunk.Complete = complete
	return stream.Send(chunk)
}

// failStream returns err as the gRPC error of a stream, and sets its trailer.
func failStream(stream grpc.ServerStream, err error, complete bool) error {
	err, trailer := wire.Encode(err, complete)
	if trailer != nil {
		stream.SetTrailer(trailer)
	}
	return err
}
