// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

func withCaller(ctx context.Context, c *rpc.Caller) context.Context {
	if c == nil {
		return ctx
	}
	return api.WithCaller(ctx, api.Caller{Name: c.GetName(), Groups: c.GetGroups()})
}

// GetContainerLogs sends the log opened by the provider.
func (s *server) GetContainerLogs(req *rpc.LogsRequest, stream rpc.Provider_GetContainerLogsServer) error {
	p, ok := s.provider.(logsProvider)
	if !ok {
		return lackError("GetContainerLogs")
	}
	opts := api.ContainerLogOpts{
		Tail: int(req.GetTail()), LimitBytes: int(req.GetLimitBytes()), Timestamps: req.GetTimestamps(), Follow: req.GetFollow(),
		Previous: req.GetPrevious(), SinceSeconds: int(req.GetSinceSeconds()),
	}
	if at := req.GetSinceTime(); at != "" {
		var err error
		if opts.SinceTime, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return failStream(stream, errdefs.AsInvalidInput(err), false)
		}
	}
	log, err := p.GetContainerLogs(withCaller(stream.Context(), req.GetCaller()), req.GetNamespace(), req.GetPod(), req.GetContainer(), opts)
	if err != nil {
		return failStream(stream, err, false)
	}
	defer log.Close()
	stop := context.AfterFunc(stream.Context(), func() { _ = log.Close() }) // interrupts a Read that waits for lines
	defer stop()
	if err := stream.Send(&rpc.Chunk{}); err != nil {
		return err
	}
	return failStream(stream, wire.CopyChunks(log, func(data []byte) error { return stream.Send(&rpc.Chunk{Data: data}) }), false)
}

// PortForward connects the stream to the port.
func (s *server) PortForward(stream rpc.Provider_PortForwardServer) error {
	p, ok := s.provider.(forwardProvider)
	if !ok {
		return lackError("PortForward")
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return failStream(stream, errdefs.InvalidInput("the first message of a port-forward must be start"), false)
	}
	in, input := io.Pipe()
	conn := &forwardConn{PipeReader: in, stream: stream}
	received := make(chan struct{})
	ctx, cancel := context.WithCancel(withCaller(stream.Context(), start.GetCaller()))
	defer cancel()
	go func() { // ends with the stream, which ends when this method returns
		defer close(received)
		for {
			message, err := stream.Recv()
			if err != nil {
				_ = input.CloseWithError(err) // io.EOF when the node has no more
				return
			}
			if _, err := input.Write(message.GetData()); err != nil {
				return
			}
		}
	}()
	err = p.PortForward(ctx, start.GetNamespace(), start.GetPod(), start.GetPort(), conn)
	_ = in.Close()
	return failStream(stream, err, false)
}

// forwardConn is the node's end of a port-forward.
type forwardConn struct {
	*io.PipeReader
	stream rpc.Provider_PortForwardServer
}

func (c *forwardConn) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); sent += wire.ChunkBytes {
		data := bytes.Clone(p[sent:min(sent+wire.ChunkBytes, len(p))])
		if err := c.stream.Send(&rpc.Chunk{Data: data}); err != nil {
			return sent, err
		}
	}
	return len(p), nil
}

// GetStatsSummary calls the provider.
func (s *server) GetStatsSummary(ctx context.Context, _ *rpc.StatsRequest) (*rpc.StatsAnswer, error) {
	p, ok := s.provider.(statsProvider)
	if !ok {
		return nil, lackError("GetStatsSummary")
	}
	summary, err := p.GetStatsSummary(ctx)
	if err != nil {
		return nil, callError(ctx, err, false)
	}
	encoded, err := json.Marshal(summary)
	return &rpc.StatsAnswer{SummaryJson: encoded}, callError(ctx, err, false)
}

// GetMetrics returns a page of metrics from the provider.
func (s *server) GetMetrics(ctx context.Context, req *rpc.MetricsRequest) (*rpc.MetricsAnswer, error) {
	var get func(context.Context) ([]*dto.MetricFamily, error)
	switch req.GetPage() {
	case rpc.MetricsPage_METRICS_PAGE_RESOURCE:
		p, ok := s.provider.(metricsProvider)
		if !ok {
			return nil, lackError("GetMetricsResource")
		}
		get = p.GetMetricsResource
	case rpc.MetricsPage_METRICS_PAGE_PROBES:
		p, ok := s.provider.(probeMetricsProvider)
		if !ok {
			return nil, lackError("GetMetricsProbes")
		}
		get = p.GetMetricsProbes
	default:
		return nil, lackError(fmt.Sprintf("for the page %v", req.GetPage()))
	}
	families, err := get(ctx)
	if err != nil {
		return nil, callError(ctx, err, false)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return nil, callError(ctx, fmt.Errorf("encode metric %s: %w", family.GetName(), err), false)
		}
	}
	return &rpc.MetricsAnswer{Text: text.Bytes()}, nil
}
