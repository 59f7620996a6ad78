// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// remoteManagement is the annotation of a workload with containers that the console can reach.
const remoteManagement = "workload.platform.stackpath.net/remote-management"

// spec is the part of a create request that has an effect here.
type spec struct {
	Name, Slug string
	Metadata   struct{ Labels, Annotations map[string]string }
	Spec       struct {
		InitContainers, Containers map[string]container
		Runtime                    struct {
			Containers struct {
				TerminationGracePeriodSeconds string
				SecurityContext               struct{ Sysctls []corev1.Sysctl }
			}
		}
	}
	Targets map[string]struct {
		Spec struct {
			DeploymentScope string
			Deployments     struct {
				MinReplicas, MaxReplicas int
				Selectors                []struct {
					Key, Operator string
					Values        []string
				}
			}
		}
	}
}

type container struct {
	Image, WorkingDir, ImagePullPolicy               string
	TerminationMessagePath, TerminationMessagePolicy string
	Command, Args                                    []string
	Env                                              map[string]struct {
		Value, SecretValue string
		ValueFrom          *struct{ InstanceFieldRef struct{ FieldPath string } }
	}
	Ports map[string]struct {
		Port     int32
		Protocol string
	}
	LivenessProbe, ReadinessProbe, StartupProbe *probe
	Resources                                   struct{ Requests, Limits map[string]string }
	Lifecycle                                   *struct{ PostStart, PreStop *handler }
	SecurityContext                             *struct{ Capabilities struct{ Add, Drop []string } }
}

type handler struct {
	HTTPGet *struct {
		Path, Scheme string
		Port         int32
		HTTPHeaders  map[string]string
	}
	TCPSocket *struct{ Port int32 }
	Exec      *corev1.ExecAction
}

type probe struct {
	handler
	InitialDelaySeconds, TimeoutSeconds, PeriodSeconds, SuccessThreshold, FailureThreshold int32
}

// grace returns how many seconds the workload has to stop; the default is 30.
func (s *spec) grace() int64 {
	n, err := strconv.ParseInt(s.Spec.Runtime.Containers.TerminationGracePeriodSeconds, 10, 64)
	if err != nil {
		return 30
	}
	return n
}

// pod returns the pod behind the workload. The service starts containers again for ever.
func (s *spec) pod() corev1.PodSpec {
	grace := s.grace()
	out := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace}
	for _, name := range slices.Sorted(maps.Keys(s.Spec.InitContainers)) {
		out.InitContainers = append(out.InitContainers, s.Spec.InitContainers[name].run(name))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Spec.Containers)) {
		out.Containers = append(out.Containers, s.Spec.Containers[name].run(name))
	}
	return out
}

func (c container) run(name string) corev1.Container {
	out := corev1.Container{
		Name: name, Image: c.Image, WorkingDir: c.WorkingDir, Command: c.Command, Args: c.Args, TerminationMessagePath: c.TerminationMessagePath,
		ImagePullPolicy: corev1.PullIfNotPresent, LivenessProbe: c.LivenessProbe.run(), ReadinessProbe: c.ReadinessProbe.run(), StartupProbe: c.StartupProbe.run(),
	}
	if c.ImagePullPolicy == "ALWAYS" {
		out.ImagePullPolicy = corev1.PullAlways
	}
	if c.TerminationMessagePolicy == "FALLBACK_TO_LOGS_ON_ERROR" {
		out.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	for _, key := range slices.Sorted(maps.Keys(c.Env)) {
		e := c.Env[key]
		value := e.Value + e.SecretValue // one of both, by the rules
		if e.ValueFrom != nil {
			value = "127.0.0.1" // every instance has this address
		}
		out.Env = append(out.Env, corev1.EnvVar{Name: key, Value: value})
	}
	for _, key := range slices.Sorted(maps.Keys(c.Ports)) {
		out.Ports = append(out.Ports, corev1.ContainerPort{ContainerPort: c.Ports[key].Port, Protocol: corev1.Protocol(c.Ports[key].Protocol)})
	}
	if l := c.Lifecycle; l != nil {
		out.Lifecycle = &corev1.Lifecycle{}
		if l.PostStart != nil {
			out.Lifecycle.PostStart = new(l.PostStart.run())
		}
		if l.PreStop != nil {
			out.Lifecycle.PreStop = new(l.PreStop.run())
		}
	}
	return out
}

func (h *handler) run() (out corev1.LifecycleHandler) {
	switch {
	case h.Exec != nil:
		out.Exec = h.Exec
	case h.HTTPGet != nil:
		out.HTTPGet = &corev1.HTTPGetAction{Path: h.HTTPGet.Path, Scheme: corev1.URIScheme(h.HTTPGet.Scheme), Port: intstr.FromInt32(h.HTTPGet.Port)}
		for _, name := range slices.Sorted(maps.Keys(h.HTTPGet.HTTPHeaders)) {
			out.HTTPGet.HTTPHeaders = append(out.HTTPGet.HTTPHeaders, corev1.HTTPHeader{Name: name, Value: h.HTTPGet.HTTPHeaders[name]})
		}
	case h.TCPSocket != nil:
		out.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(h.TCPSocket.Port)}
	}
	return out
}

func (p *probe) run() *corev1.Probe {
	if p == nil {
		return nil
	}
	does := p.handler.run()
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{Exec: does.Exec, HTTPGet: does.HTTPGet, TCPSocket: does.TCPSocket},
		InitialDelaySeconds: p.InitialDelaySeconds, TimeoutSeconds: p.TimeoutSeconds, PeriodSeconds: p.PeriodSeconds,
		SuccessThreshold: p.SuccessThreshold, FailureThreshold: p.FailureThreshold,
	}
}
