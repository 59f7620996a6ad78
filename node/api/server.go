// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodHandlerConfig holds what PodHandler serves. Every field is optional.
type PodHandlerConfig struct {
	// RunInContainer serves /exec; nil answers 501.
	RunInContainer ContainerExecHandlerFunc
	// AttachToContainer serves /attach; nil answers 501.
	AttachToContainer ContainerAttachHandlerFunc
	// PortForward serves /portForward; nil answers 501.
	PortForward PortForwardHandlerFunc
	// GetContainerLogs serves /containerLogs; nil answers 501.
	GetContainerLogs ContainerLogsHandlerFunc
	// GetPods returns the pods that the provider runs, for /runningpods; nil answers 501.
	GetPods PodListerFunc
	// GetPodsFromKubernetes returns the pods that the API server has bound to
	// this node, for /pods; nil answers 501. They are shown whole, so they must
	// not carry resolved Secrets.
	GetPodsFromKubernetes PodListerFunc
	// GetStatsSummary serves /stats/summary; nil leaves the route out.
	GetStatsSummary PodStatsSummaryHandlerFunc
	// GetMetricsResource serves /metrics/resource; nil leaves the route out.
	GetMetricsResource PodMetricsResourceHandlerFunc
	// GetMetricsProbes serves /metrics/probes, which has what is known of the probes of containers; nil
	// answers with nothing.
	GetMetricsProbes PodMetricsResourceHandlerFunc

	// StreamIdleTimeout ends an exec, attach or port-forward connection on
	// which nothing is sent for so long. Zero means 4 hours.
	StreamIdleTimeout time.Duration
	// StreamCreationTimeout limits how long a client may take to create its
	// streams. Zero means 30 seconds.
	StreamCreationTimeout time.Duration
	// StreamLimits bounds how many exec, attach and port-forward connections are under
	// way; a client of one more gets 429. Nil is no limit.
	StreamLimits *StreamLimits

	// GetPod looks up a pod that is bound to this node; the pod is not changed.
	// When it is set, logs, exec, attach and port-forward answer 404 without
	// calling the provider if the pod is nil or the error is of the kind
	// not-found, if the route has another UID than the pod, or if the pod has no
	// such container. When it is nil, nothing is checked and the UID in a route
	// is ignored.
	GetPod func(namespace, name string) (*corev1.Pod, error)
	// Metrics serves /metrics; nil leaves the route out.
	Metrics http.Handler
	// Health decides on the answer of /healthz and /readyz: nil is 200, an error 500. A nil
	// function is always well.
	Health func(context.Context) error
	// HealthChecks are asked beside Health. Each has a path of its own, such as /healthz/NAME.
	HealthChecks []HealthCheck
	// Live decides on the answer of /livez, as Health does: an error says that the process should
	// be started again.
	Live func(context.Context) error
	// GetConfig returns what /configz shows as kubeletconfig, a KubeletConfiguration with its
	// apiVersion and kind; nil leaves the route out.
	GetConfig func() any
	// GetFlags returns what /flagz shows, by name, which must hold no secret; nil leaves the route out.
	GetFlags func() map[string]string
	// Version is what /statusz says about the program.
	Version string
	// Profiling serves /debug/pprof. Profiles show what the program does, and take time.
	Profiling bool
}

// PodHandler returns a handler with the routes of a kubelet that p has
// functions for. With debug it has /runningpods/ too. It neither
// authenticates nor authorizes.
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
	// Metrics of probes are served for those who scrape them from every node, also where nothing is probed.
	probes := p.GetMetricsProbes
	if probes == nil {
		probes = noMetrics
	}
	r.handle("/metrics/probes", HandlePodMetricsResource(probes), http.MethodGet)
	if p.GetMetricsResource != nil {
		r.handle(MetricsResourceRouteSuffix, HandlePodMetricsResource(p.GetMetricsResource), http.MethodGet)
	}
	if p.Metrics != nil {
		r.handle("/metrics", p.Metrics, http.MethodGet)
	}
	p.attachContainerRoutes(r)
	return r
}

// attachContainerRoutes adds the routes that concern one pod. The ones with a
// UID are the kubelet's.
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

// PodMetricsConfig holds what AttachPodMetricsRoutes serves. A nil function answers 501.
type PodMetricsConfig struct {
	// GetStatsSummary serves /stats/summary.
	GetStatsSummary PodStatsSummaryHandlerFunc
	// GetMetricsResource serves /metrics/resource.
	GetMetricsResource PodMetricsResourceHandlerFunc
}

// AttachPodMetricsRoutes mounts /stats/summary and /metrics/resource on mux,
// each with and without a slash at its end, with InstrumentHandler around them.
func AttachPodMetricsRoutes(p PodMetricsConfig, mux ServeMux) {
	stats := InstrumentHandler(PodStatsSummaryHandler(p.GetStatsSummary))
	mux.Handle(statsSummaryRoute, stats)
	mux.Handle(statsSummaryRoute+"/", stats)
	metrics := InstrumentHandler(PodMetricsResourceHandler(p.GetMetricsResource))
	mux.Handle(MetricsResourceRouteSuffix, metrics)
	mux.Handle(MetricsResourceRouteSuffix+"/", metrics)
}
