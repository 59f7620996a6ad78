// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

// received is one result of a WatchPods stream.
type received struct {
	pods []*corev1.Pod
	err  error
}

// watchPods passes the plugin's pod reports on. Once the watch is open, it calls ready and lists all pods,
// because earlier reports may be lost. A report that arrives during the list takes precedence over the listed
// pod.
func (p *plugin) watchPods(ctx context.Context, s *session, ready func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	stream, err := s.WatchPods(ctx, &rpc.WatchPodsRequest{})
	if err == nil {
		_, err = stream.Recv() // the watch is open
	}
	if err != nil {
		return p.watchError(ctx, s, "reports of pods", err)
	}
	reports := make(chan received)
	wg.Go(func() {
		for {
			report, err := stream.Recv()
			var r received
			if err == nil {
				r.pods, r.err = s.decodePods(report.GetPods())
			} else {
				r.err = p.watchError(ctx, s, "reports of pods", err)
			}
			select {
			case reports <- r:
			case <-ctx.Done():
				return
			}
			if r.err != nil {
				return
			}
		}
	})
	if err := ready(); err != nil {
		return err
	}
	if err := p.reportAll(ctx, s, reports); err != nil {
		return err
	}
	for {
		select {
		case r := <-reports:
			if r.err != nil {
				return r.err
			}
			for _, pod := range r.pods {
				p.notify(pod)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reportAll lists all pods and reports them.
func (p *plugin) reportAll(ctx context.Context, s *session, reports <-chan received) error {
	ctx, cancel := context.WithCancel(ctx)
	listed := make(chan received, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		pods, _, err := s.list(ctx)
		listed <- received{pods, err}
	})
	reported := map[types.UID]bool{}
	for {
		select {
		case r := <-reports:
			if r.err != nil {
				return r.err
			}
			for _, pod := range r.pods {
				reported[pod.UID] = true
				p.notify(pod)
			}
		case r := <-listed:
			if r.err != nil {
				return p.watchError(ctx, s, "list of pods", r.err)
			}
			for _, pod := range r.pods {
				if !reported[pod.UID] {
					p.notify(pod)
				}
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchError returns the error for a stream that ended before its session.
func (p *plugin) watchError(ctx context.Context, s *session, what string, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("plugin %s ended its %s", p.agreed.name, what)
	}
	_, kind := p.decodeError(ctx, s, err, nil)
	return fmt.Errorf("%s: %w", what, kind)
}
