// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
	"github.com/virtual-kubelet/virtual-kubelet/trace/opentelemetry"
)

// startTracing sends spans to the endpoint, if there is one. The returned function sends the remaining spans and
// stops.
func (o *options) startTracing(ctx context.Context, provider, version string) (func(context.Context) error, error) {
	if o.TraceEndpoint == "" {
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := newExporter(ctx, o.TraceEndpoint)
	if err != nil {
		return nil, err
	}
	sample, err := sampler(o.TraceSampleRate)
	if err != nil {
		return nil, err
	}
	attributes := []attribute.KeyValue{
		attribute.String("service.name", o.TraceServiceName),
		attribute.String("service.version", version),
		attribute.String("operatingSystem", o.OperatingSystem),
		attribute.String("provider", provider),
		attribute.String("nodeName", o.name()),
	}
	for key, value := range o.TraceTags {
		attributes = append(attributes, attribute.String(key, value))
	}
	tp := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sample)),
		sdktrace.WithResource(resource.NewSchemaless(attributes...)),
	)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.L.WithError(err).Warn("Traces cannot be sent")
	}))
	otel.SetTracerProvider(tp)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	trace.T = opentelemetry.Adapter{}
	return tp.Shutdown, nil
}

// parseEndpoint returns nil for an empty endpoint.
func parseEndpoint(endpoint string) (*url.URL, error) {
	if endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	if err == nil && u.Host != "" {
		switch u.Scheme {
		case "http", "https", "grpc", "grpcs":
			return u, nil
		}
	}
	return nil, fmt.Errorf("--trace-endpoint %q: want a URL such as http://127.0.0.1:4318 or grpc://127.0.0.1:4317", endpoint)
}

func newExporter(ctx context.Context, endpoint string) (sdktrace.SpanExporter, error) {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(u.Scheme, "grpc") {
		opts := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(u.Host)}
		if u.Scheme == "grpc" {
			opts = append(opts, otlptracegrpc.WithInsecure())
		}
		return otlptracegrpc.New(ctx, opts...)
	}
	opts := []otlptracehttp.Option{otlptracehttp.WithEndpoint(u.Host)}
	if u.Scheme == "http" {
		opts = append(opts, otlptracehttp.WithInsecure())
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		opts = append(opts, otlptracehttp.WithURLPath("/"+path))
	}
	return otlptracehttp.New(ctx, opts...)
}

// sampler returns the sampler for traces that begin here.
func sampler(rate string) (sdktrace.Sampler, error) {
	switch rate {
	case "always":
		return sdktrace.AlwaysSample(), nil
	case "never":
		return sdktrace.NeverSample(), nil
	}
	percent, err := strconv.ParseFloat(rate, 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return nil, fmt.Errorf("--trace-sample-rate %q: want always, never, or a number from 0 to 100", rate)
	}
	return sdktrace.TraceIDRatioBased(percent / 100), nil
}
