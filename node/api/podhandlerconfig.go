// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodHandlerConfig has the functions that serve the routes of PodHandler. Every field is optional.
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
	// GetPodsFromKubernetes returns the pods that the API server has bound to this node, for /pods; nil answers
	// 501. These pods are shown whole, so they must not carry resolved Secrets.
	GetPodsFromKubernetes PodListerFunc
	// GetStatsSummary serves /stats/summary; nil leaves the route out.
	GetStatsSummary PodStatsSummaryHandlerFunc
	// GetMetricsResource serves /metrics/resource; nil leaves the route out.
	GetMetricsResource PodMetricsResourceHandlerFunc
	// GetMetricsProbes serves /metrics/probes with the known probe results of containers; nil serves an empty result.
	GetMetricsProbes PodMetricsResourceHandlerFunc

	// StreamIdleTimeout ends an exec, attach or port-forward connection without traffic after this time. Zero
	// means 4 hours.
	StreamIdleTimeout time.Duration
	// StreamCreationTimeout limits how long a client may take to create its
	// streams. Zero means 30 seconds.
	StreamCreationTimeout time.Duration
	// StreamLimits bounds the number of exec, attach and port-forward connections under way; a client beyond the
	// limit gets 429. Nil is no limit.
	StreamLimits *StreamLimits

	// GetPod looks up a pod that is bound to this node; the handlers do not change the pod. If GetPod is set, logs, exec, attach and
	// port-forward answer 404 without calling the provider in three cases: the pod is nil or the error is of the kind not-found, the route
	// has another UID than the pod, or the pod has no such container. If GetPod is nil, nothing is checked and the UID in a route is
	// ignored.
	GetPod func(namespace, name string) (*corev1.Pod, error)
	// Metrics serves /metrics; nil leaves the route out.
	Metrics http.Handler
	// Health decides the status of /healthz and /readyz: 200 for nil and 500 for an error. /metrics/slis reports the result. A nil function
	// always passes.
	Health func(context.Context) error
	// HealthChecks are additional checks. Each has its own path, such as /healthz/NAME.
	HealthChecks []HealthCheck
	// Live decides the status of /livez in the same way: an error means that the process should be restarted.
	Live func(context.Context) error
	// GetConfig returns the kubeletconfig of /configz, a KubeletConfiguration with its apiVersion and kind; nil
	// leaves the route out.
	GetConfig func() any
	// GetFlags returns the flags of /flagz by name, which must hold no secret; nil leaves the route out.
	GetFlags func() map[string]string
	// SetVerbosity receives the body of a PUT to /debug/flags/v, and returns an error for an invalid verbosity; nil leaves the route out.
	SetVerbosity func(value string) error
	// GetDebug returns the content of /debug/pods, which must hold no secret; nil leaves the route out.
	GetDebug func(context.Context) DebugPage
	// Version is the version of the program in /statusz.
	Version string
	// Profiling enables /debug/pprof. Profiles reveal details of the program, and cost CPU time.
	Profiling bool
}

// HealthCheck is one of the checks of /healthz and the similar pages, with a path below them.
type HealthCheck struct {
	// Name is the last part of the path.
	Name string
	// Check returns nil if the check passes. It must be fast, and safe for concurrent use.
	Check func(context.Context) error
}
