// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"

	dto "github.com/prometheus/client_model/go"
)

// PodHandler returns a handler with those kubelet routes that have a function in p, and with /runningpods/ if debug is set. The handler
// neither authenticates nor authorizes.
func PodHandler(p PodHandlerConfig, debug bool) http.Handler {
	r := newRouter()
	if debug {
		r.handle("/runningpods", HandleRunningPods(p.GetPods), http.MethodGet)
	}
	r.handle("/pods", handlePods(p.GetPodsFromKubernetes, wholePod), http.MethodGet)
	p.attachHealth(r)
	p.attachPages(r)
	if p.Profiling {
		attachProfiling(r)
	}
	if p.GetStatsSummary != nil {
		r.handle(statsSummaryRoute, HandlePodStatsSummary(p.GetStatsSummary), http.MethodGet)
		r.handle("/metrics/cadvisor", HandlePodMetricsResource(p.cadvisorMetrics), http.MethodGet)
	}
	// Without probes /metrics/probes is still served, for scrapers that scrape it on every node.
	probes := p.GetMetricsProbes
	if probes == nil {
		probes = noMetrics
	}
	r.handle("/metrics/probes", HandlePodMetricsResource(probes), http.MethodGet)
	r.handle("/metrics/slis", HandlePodMetricsResource(func(ctx context.Context) ([]*dto.MetricFamily, error) {
		return sliMetrics(ctx, p.readyChecks())
	}), http.MethodGet)
	if p.GetMetricsResource != nil {
		r.handle(MetricsResourceRouteSuffix, HandlePodMetricsResource(p.GetMetricsResource), http.MethodGet)
	}
	if p.Metrics != nil {
		r.handle("/metrics", p.Metrics, http.MethodGet)
	}
	p.attachContainerRoutes(r)
	return r
}

// attachContainerRoutes adds the routes for a single pod. The routes with a UID are the same as the kubelet's.
func (p PodHandlerConfig) attachContainerRoutes(r router) {
	const (
		pod          = "/{namespace}/{pod}"
		container    = pod + "/{container}"
		podUID       = pod + "/{uid}"
		containerUID = podUID + "/{container}"
	)

	logs := HandleContainerLogs(p.GetContainerLogs)
	if p.GetContainerLogs != nil {
		logs = requirePod(p.GetPod, containerTarget, logs)
	}
	r.handle("/containerLogs"+container, logs, http.MethodGet)

	streaming := []string{http.MethodPost, http.MethodGet}
	execOpts := []ContainerExecHandlerOption{
		WithExecStreamIdleTimeout(p.StreamIdleTimeout),
		WithExecStreamCreationTimeout(p.StreamCreationTimeout),
	}
	exec := p.StreamLimits.Limit(HandleContainerExec(p.RunInContainer, execOpts...))
	if p.RunInContainer != nil {
		exec = requirePod(p.GetPod, containerTarget, exec)
	}
	r.handle("/exec"+container, exec, streaming...)
	r.handle("/exec"+containerUID, exec, streaming...)

	attach := p.StreamLimits.Limit(HandleContainerAttach(p.AttachToContainer, execOpts...))
	if p.AttachToContainer != nil {
		attach = requirePod(p.GetPod, containerTarget, attach)
	}
	r.handle("/attach"+container, attach, streaming...)
	r.handle("/attach"+containerUID, attach, streaming...)

	forward := p.StreamLimits.Limit(HandlePortForward(p.PortForward,
		WithPortForwardStreamIdleTimeout(p.StreamIdleTimeout),
		WithPortForwardCreationTimeout(p.StreamCreationTimeout)))
	if p.PortForward != nil {
		forward = requirePod(p.GetPod, podTarget, forward)
	}
	r.handle("/portForward"+pod, forward, streaming...)
	r.handle("/portForward"+podUID, forward, streaming...)
}

// AttachPodRoutes mounts PodHandler at "/" of mux, with InstrumentHandler
// around it.
func AttachPodRoutes(p PodHandlerConfig, mux ServeMux, debug bool) {
	mux.Handle("/", InstrumentHandler(PodHandler(p, debug)))
}

// PodMetricsConfig has the functions that serve the routes of AttachPodMetricsRoutes. A nil function answers 501.
type PodMetricsConfig struct {
	// GetStatsSummary serves /stats/summary.
	GetStatsSummary PodStatsSummaryHandlerFunc
	// GetMetricsResource serves /metrics/resource.
	GetMetricsResource PodMetricsResourceHandlerFunc
}

// AttachPodMetricsRoutes mounts /stats/summary and /metrics/resource on mux, each with and without a trailing slash, wrapped by
// InstrumentHandler.
func AttachPodMetricsRoutes(p PodMetricsConfig, mux ServeMux) {
	stats := InstrumentHandler(PodStatsSummaryHandler(p.GetStatsSummary))
	mux.Handle(statsSummaryRoute, stats)
	mux.Handle(statsSummaryRoute+"/", stats)
	metrics := InstrumentHandler(PodMetricsResourceHandler(p.GetMetricsResource))
	mux.Handle(MetricsResourceRouteSuffix, metrics)
	mux.Handle(MetricsResourceRouteSuffix+"/", metrics)
}
