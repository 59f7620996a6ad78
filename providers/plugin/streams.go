// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

func callerOf(ctx context.Context) *rpc.Caller {
	who, ok := api.CallerFrom(ctx)
	if !ok {
		return nil
	}
	return &rpc.Caller{Name: who.Name, Groups: who.Groups}
}

// GetContainerLogs opens the log at the plugin.
func (p *plugin) GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	if err := p.need(rpc.Ability_ABILITY_LOGS, "logs"); err != nil {
		return nil, err
	}
	s, err := p.connected()
	if err != nil {
		return nil, err
	}
	request := &rpc.LogsRequest{
		Namespace: namespace, Pod: podName, Container: containerName, Tail: int64(opts.Tail), LimitBytes: int64(opts.LimitBytes),
		Timestamps: opts.Timestamps, Follow: opts.Follow, Previous: opts.Previous, SinceSeconds: int64(opts.SinceSeconds), Caller: callerOf(ctx),
	}
	if !opts.SinceTime.IsZero() {
		request.SinceTime = opts.SinceTime.Format(time.RFC3339Nano)
	}
	ctx, cancel := s.attach(ctx)
	l := &logReader{p: p, s: s, ctx: ctx, cancel: cancel}
	l.stream, err = s.GetContainerLogs(ctx, request)
	if err == nil {
		err = l.next() // the kind of an error is known only now
	} else {
		err = l.end(err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		cancel()
		return nil, err
	}
	return l, nil
}

// logReader is a log at the plugin. A stream that was cut is an error, not an end.
type logReader struct {
	p      *plugin
	s      *session
	ctx    context.Context //nolint:containedctx // it is the life of the stream
	cancel context.CancelFunc
	stream rpc.Provider_GetContainerLogsClient
	rest   []byte
	ended  error
}

func (l *logReader) next() error {
	chunk, err := l.stream.Recv()
	if err != nil {
		return l.end(err)
	}
	l.rest = chunk.GetData()
	return nil
}

func (l *logReader) end(err error) error {
	l.ended = err
	if !errors.Is(err, io.EOF) {
		_, l.ended = l.p.decode(l.ctx, l.s, err, trailerOf(l.stream))
	}
	return l.ended
}

// Read waits for what is next.
func (l *logReader) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.ended != nil {
			return 0, l.ended
		}
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close ends the stream.
func (l *logReader) Close() error {
	l.cancel()
	return nil
}

// PortForward copies between stream and a port at the plugin.
func (p *plugin) PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error {
	if err := p.need(rpc.Ability_ABILITY_PORT_FORWARD, "port-forward"); err != nil {
		return err
	}
	s, err := p.connected()
	if err != nil {
		return err
	}
	start := &rpc.ForwardStart{Namespace: namespace, Pod: pod, Port: port, Caller: callerOf(ctx)}
	ctx, cancel := s.attach(ctx)
	defer cancel()
	remote, err := s.PortForward(ctx)
	if err == nil {
		err = remote.Send(&rpc.ForwardInput{Input: &rpc.ForwardInput_Start{Start: start}})
	}
	if err != nil && !errors.Is(err, io.EOF) { // of which Recv says why
		_, err = p.decode(ctx, s, err, nil)
		return err
	}
	go func() { // ends with stream, which the caller closes
		_ = wire.CopyChunks(stream, func(data []byte) error {
			return remote.Send(&rpc.ForwardInput{Input: &rpc.ForwardInput_Data{Data: data}})
		})
		_ = remote.CloseSend()
	}()
	for {
		chunk, err := remote.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			_, err = p.decode(ctx, s, err, remote.Trailer())
			return err
		}
		if _, err := stream.Write(chunk.GetData()); err != nil {
			return fmt.Errorf("write to the client: %w", err)
		}
	}
}

// GetStatsSummary asks the plugin.
func (p *plugin) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	if err := p.need(rpc.Ability_ABILITY_STATS, "statistics"); err != nil {
		return nil, err
	}
	summary := &statsv1alpha1.Summary{}
	_, err := p.call(ctx, func(ctx context.Context, s *session, trailer grpc.CallOption) error {
		answer, err := s.GetStatsSummary(ctx, &rpc.StatsRequest{}, trailer)
		if err != nil {
			return err
		}
		return json.Unmarshal(answer.GetSummaryJson(), summary)
	})
	if err != nil {
		return nil, err
	}
	return summary, nil
}

// GetMetricsResource asks the plugin.
func (p *plugin) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	return p.metrics(ctx, rpc.Ability_ABILITY_METRICS, rpc.MetricsPage_METRICS_PAGE_RESOURCE)
}

// GetMetricsProbes asks the plugin.
func (p *plugin) GetMetricsProbes(ctx context.Context) ([]*dto.MetricFamily, error) {
	return p.metrics(ctx, rpc.Ability_ABILITY_PROBE_METRICS, rpc.MetricsPage_METRICS_PAGE_PROBES)
}

// metrics is empty if the plugin has none, so that what scrapes the node finds the rest.
func (p *plugin) metrics(ctx context.Context, ability rpc.Ability, page rpc.MetricsPage) (families []*dto.MetricFamily, err error) {
	if !p.agreed.has(ability) {
		return nil, nil
	}
	_, err = p.call(ctx, func(ctx context.Context, s *session, trailer grpc.CallOption) error {
		answer, err := s.GetMetrics(ctx, &rpc.MetricsRequest{Page: page}, trailer)
		if err != nil {
			return err
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		byName, err := parser.TextToMetricFamilies(bytes.NewReader(answer.GetText()))
		if err != nil {
			return fmt.Errorf("decode the metrics of plugin %s: %w", p.agreed.name, err)
		}
		for _, family := range byName {
			families = append(families, family)
		}
		return nil
	})
	return families, err
}
