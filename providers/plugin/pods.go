// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// podCall is the type of the methods CreatePod, UpdatePod and DeletePod of a session.
type podCall func(*session, context.Context, *rpc.PodRequest, ...grpc.CallOption) (*rpc.PodDone, error)

func (p *plugin) withPod(ctx context.Context, pod *corev1.Pod, do podCall) error {
	_, err := p.callPlugin(ctx, func(ctx context.Context, s *session, trailer grpc.CallOption) error {
		request, err := s.podRequest(pod)
		if err != nil {
			return err
		}
		_, err = do(s, ctx, request, trailer)
		return err
	})
	return err
}

// podRequest encodes the pod. It returns an error if the pod exceeds the plugin's message limit.
func (s *session) podRequest(pod *corev1.Pod) (*rpc.PodRequest, error) {
	encoded, err := wire.Marshal(s.hello.GetEncoding(), pod)
	if err != nil {
		return nil, fmt.Errorf("encode pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	const head = 16 // the overhead of the outer message
	if limit := s.hello.GetMaxMessageBytes(); limit > 0 && int64(len(encoded)+head) > limit {
		return nil, largeError{fmt.Sprintf("pod %s/%s has %d bytes, and the plugin takes messages of %d: raise MaxMessageBytes of the plugin, or make the pod smaller",
			pod.Namespace, pod.Name, len(encoded), limit)}
	}
	return &rpc.PodRequest{Pod: encoded}, nil
}

// largeError is the error for a pod that exceeds the plugin's message limit.
type largeError struct{ message string }

func (e largeError) Error() string { return e.message }

// stopOf returns a reduced pod for a delete request: its identity, its containers and its deletion fields. Even a
// pod that has become too large must be deletable.
func stopOf(pod *corev1.Pod) *corev1.Pod {
	named := func(list []corev1.Container) (names []corev1.Container) {
		for i := range list {
			names = append(names, corev1.Container{Name: list[i].Name, Image: list[i].Image, RestartPolicy: list[i].RestartPolicy})
		}
		return names
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, RestartPolicy: pod.Spec.RestartPolicy, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
			InitContainers: named(pod.Spec.InitContainers), Containers: named(pod.Spec.Containers),
		},
	}
}

// CreatePod calls the plugin.
func (p *plugin) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	p.rememberPod(pod)
	return p.withPod(ctx, pod, func(s *session, ctx context.Context, r *rpc.PodRequest, o ...grpc.CallOption) (*rpc.PodDone, error) {
		return s.CreatePod(ctx, r, o...)
	})
}

// UpdatePod calls the plugin.
func (p *plugin) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	p.rememberPod(pod)
	return p.withPod(ctx, pod, func(s *session, ctx context.Context, r *rpc.PodRequest, o ...grpc.CallOption) (*rpc.PodDone, error) {
		return s.UpdatePod(ctx, r, o...)
	})
}

// DeletePod calls the plugin.
func (p *plugin) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	p.known.markLeaving(pod.UID)
	stop := func(s *session, ctx context.Context, r *rpc.PodRequest, o ...grpc.CallOption) (*rpc.PodDone, error) {
		return s.DeletePod(ctx, r, o...)
	}
	err := p.withPod(ctx, pod, stop)
	if large := (largeError{}); errors.As(err, &large) {
		return p.withPod(ctx, stopOf(pod), stop)
	}
	return err
}

// GetPod calls the plugin.
func (p *plugin) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := p.get(ctx, func(ctx context.Context, s *session, trailer grpc.CallOption) error {
		answer, err := s.GetPod(ctx, &rpc.PodName{Namespace: namespace, Name: name}, trailer)
		if err != nil {
			return err
		}
		if err := wire.Unmarshal(s.hello.GetEncoding(), answer.GetPod(), pod); err != nil {
			return fmt.Errorf("decode pod %s/%s: %w", namespace, name, err)
		}
		if pod.Namespace != namespace || pod.Name != name {
			return fmt.Errorf("plugin %s was asked for pod %s/%s and answered with %q/%q", p.agreed.name, namespace, name, pod.Namespace, pod.Name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pod, nil
}

// GetPodStatus calls the plugin.
func (p *plugin) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	status := &corev1.PodStatus{}
	err := p.get(ctx, func(ctx context.Context, s *session, trailer grpc.CallOption) error {
		answer, err := s.GetPodStatus(ctx, &rpc.PodName{Namespace: namespace, Name: name}, trailer)
		if err != nil {
			return err
		}
		if err := wire.Unmarshal(s.hello.GetEncoding(), answer.GetStatus(), status); err != nil {
			return fmt.Errorf("decode the status of pod %s/%s: %w", namespace, name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return status, nil
}

// get calls the plugin, and records for a not-found error whether the plugin knew all pods.
func (p *plugin) get(ctx context.Context, f func(context.Context, *session, grpc.CallOption) error) error {
	complete, err := p.callPlugin(ctx, f)
	if errdefs.IsNotFound(err) {
		if doubt := p.complete.checkAnswer(complete, time.Now()); doubt != nil {
			return doubt
		}
	}
	return err
}

// GetPods gets all pods of the plugin. An incomplete stream is an error.
func (p *plugin) GetPods(ctx context.Context) (pods []*corev1.Pod, err error) {
	began := time.Now()
	complete := false
	_, err = p.callPlugin(ctx, func(ctx context.Context, s *session, trailer grpc.CallOption) error {
		pods, complete, err = s.list(ctx, trailer)
		return err
	})
	if err == nil {
		err = p.complete.checkAnswer(complete, time.Now())
	}
	if err != nil {
		return nil, err
	}
	p.known.keepListed(pods, complete, began)
	return pods, nil
}

func (s *session) list(ctx context.Context, o ...grpc.CallOption) (pods []*corev1.Pod, complete bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.GetPods(ctx, &rpc.GetPodsRequest{}, o...)
	if err != nil {
		return nil, false, err
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return pods, complete, nil
		}
		if err != nil {
			return nil, false, err
		}
		chunk, err := s.decodePods(answer.GetPods())
		if err != nil {
			return nil, false, err
		}
		pods, complete = append(pods, chunk...), answer.GetComplete()
	}
}

func (s *session) decodePods(encoded [][]byte) ([]*corev1.Pod, error) {
	pods := make([]*corev1.Pod, 0, len(encoded))
	for _, data := range encoded {
		pod := &corev1.Pod{}
		if err := wire.Unmarshal(s.hello.GetEncoding(), data, pod); err != nil {
			return nil, fmt.Errorf("decode a pod of the plugin: %w", err)
		}
		if pod.Namespace == "" || pod.Name == "" {
			return nil, fmt.Errorf("the plugin sent a pod without a name or namespace: %q/%q", pod.Namespace, pod.Name)
		}
		pods = append(pods, pod)
	}
	return pods, nil
}
