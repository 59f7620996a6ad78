// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonobject"
)

// sizes are SP-1 to SP-8, by the README of virtual-kubelet-stackpath at 0dfe8f5 of 2023-11-18. Each container
// has its own size.
var sizes = []sizing.Row{
	sizing.At(1000, sizing.One(2*sizing.Gi)), sizing.At(2000, sizing.One(4*sizing.Gi), sizing.One(8*sizing.Gi)), sizing.At(4000, sizing.One(16*sizing.Gi)),
	sizing.At(8000, sizing.One(32*sizing.Gi)), sizing.At(16000, sizing.One(64*sizing.Gi)), sizing.At(32000, sizing.One(128*sizing.Gi)), sizing.At(48000, sizing.One(256*sizing.Gi)),
}

// object is a part of a request, in the format of the API. 64-bit numbers are strings there.
type object = jsonobject.Object

// numberText returns a 64-bit number as a string, or "" for nil.
func numberText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// mapping converts pods to workloads.
type mapping struct {
	config Config
	owner  identity.Owner
}

// checkPod refuses a pod for each reason of workloadRequest that depends only on the pod.
func (m mapping) checkPod(pod *corev1.Pod) error {
	in, err := service.Unread(m.owner, pod)
	if err == nil {
		_, err = m.workloadRequest(in)
	}
	return err
}

// workloadRequest returns the request for the workload of a pod. The same pod always gives the same request. Errors are
// of the kind invalid-input, with the field.
func (m mapping) workloadRequest(in *service.Inputs) ([]byte, error) {
	metadata := object{"labels": in.Tags} // without annotations of the pod, because some have an effect at the service
	if m.config.Console.Address != "" {
		metadata["annotations"] = object{"workload.platform.stackpath.net/remote-management": "true"}
	}
	containers, logins, known := map[bool]object{true: {}, false: {}}, []object(nil), map[node.RegistryCredential]bool{}
	err := cmp.Or(refuseSpec(&in.Pod.Spec, field.NewPath("spec")), service.Containers(in.Pod, func(c *corev1.Container, init bool, at *field.Path) (err error) {
		containers[init][c.Name], err = m.mapContainer(c, in.Containers[c.Name], at)
		if l, ok := in.RegistryLogin(c.Image); ok && !known[l] {
			known[l], logins = true, append(logins, object{"dockerRegistry": object{"server": l.Registry, "username": l.Username, "password": l.Password}})
		}
		return err
	}))
	if err != nil {
		return nil, err
	}
	deployments := object{"minReplicas": 1, "maxReplicas": 1, "selectors": []object{{"key": "cityCode", "operator": "In", "values": []string{m.config.CityCode}}}}
	return json.Marshal(object{"workload": object{
		"name": in.Name, "slug": in.Name, "metadata": metadata,
		"spec": object{
			"networkInterfaces": []object{{"network": "default"}}, "initContainers": containers[true], "containers": containers[false],
			"imagePullCredentials": logins, "runtime": object{"containers": runtimeSettings(&in.Pod.Spec)},
		}.WithoutEmpty(),
		"targets": object{"node": object{"spec": object{"deploymentScope": "cityCode", "deployments": deployments}}},
	}})
}

// refuseSpec refuses settings that a workload has no field for, unless a feature covers them.
func refuseSpec(s *corev1.PodSpec, at *field.Path) error {
	switch {
	case len(s.InitContainers) > 1:
		return errdefs.InvalidInputf("%s: a workload has init containers by name, and no order of them: want one at most", at.Child("initContainers").Index(1))
	case s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds > 300:
		return errdefs.InvalidInputf("%s: a workload has 300 s at most", at.Child("terminationGracePeriodSeconds"))
	case s.OS != nil && s.OS.Name != corev1.Linux:
		return errdefs.InvalidInputf("%s: workloads of this node run Linux", at.Child("os"))
	}
	return nil
}

// runtimeSettings returns the settings of all containers. Its Kubernetes objects have the same field names at the service.
func runtimeSettings(s *corev1.PodSpec) object {
	c, groups := cmp.Or(s.SecurityContext, &corev1.PodSecurityContext{}), []string(nil)
	for _, n := range c.SupplementalGroups {
		groups = append(groups, numberText(&n))
	}
	return object{
		"terminationGracePeriodSeconds": numberText(s.TerminationGracePeriodSeconds), "shareProcessNamespace": s.ShareProcessNamespace, "hostAliases": s.HostAliases, "dnsConfig": s.DNSConfig,
		"securityContext": object{
			"runAsUser": numberText(c.RunAsUser), "runAsGroup": numberText(c.RunAsGroup), "runAsNonRoot": c.RunAsNonRoot, "supplementalGroups": groups,
		}.WithoutEmpty(),
	}.WithoutEmpty()
}

// mapContainer maps one container of the spec; full is the same container with its environment.
func (m mapping) mapContainer(c, full *corev1.Container, at *field.Path) (object, error) {
	if in := podspec.SecretWord(c, full, at); in != nil {
		return nil, errdefs.InvalidInputf("%s: it names a variable that comes from a Secret, and commands are shown: let a shell in the container expand it", in)
	}
	size, err := sizeOf(c, at.Child("resources"))
	if err != nil {
		return nil, err
	}
	out := object{
		"image": c.Image, "command": full.Command, "args": full.Args, "workingDir": c.WorkingDir, "resources": object{"requests": size, "limits": size},
		"terminationMessagePath": c.TerminationMessagePath,
		"terminationMessagePolicy": map[corev1.TerminationMessagePolicy]string{
			corev1.TerminationMessageReadFile: "FILE", corev1.TerminationMessageFallbackToLogsOnError: "FALLBACK_TO_LOGS_ON_ERROR",
		}[c.TerminationMessagePolicy],
		"imagePullPolicy": map[corev1.PullPolicy]string{corev1.PullAlways: "ALWAYS", corev1.PullIfNotPresent: "IF_NOT_PRESENT"}[c.ImagePullPolicy],
	}
	if c.ImagePullPolicy == corev1.PullNever {
		return nil, errdefs.InvalidInputf("%s: Never: nothing brings images there but a pull", at.Child("imagePullPolicy"))
	}
	if out["env"], err = environmentOf(c, full, at.Child("env")); err != nil {
		return nil, err
	}
	ports := object{}
	for i, p := range c.Ports {
		protocol := cmp.Or(p.Protocol, corev1.ProtocolTCP)
		if protocol == corev1.ProtocolSCTP {
			return nil, errdefs.InvalidInputf("%s: SCTP: a workload has ports of TCP and UDP", at.Child("ports").Index(i).Child("protocol"))
		}
		name := cmp.Or(p.Name, strings.ToLower(string(protocol))+"-"+strconv.Itoa(int(p.ContainerPort)))
		ports[name] = object{"port": p.ContainerPort, "protocol": protocol, "enableImplicitNetworkPolicy": m.config.OpenPorts}.WithoutEmpty()
	}
	out["ports"] = ports
	for name, p := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		if p == nil {
			continue
		} else if p.TerminationGracePeriodSeconds != nil {
			return nil, errdefs.InvalidInputf("%s: a probe of a workload has no field for it", at.Child(name, "terminationGracePeriodSeconds"))
		}
		does, err := actionOf(&corev1.LifecycleHandler{Exec: p.Exec, HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket}, c, at.Child(name))
		if err != nil {
			return nil, err
		}
		does["initialDelaySeconds"], does["timeoutSeconds"], does["periodSeconds"] = p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds
		does["successThreshold"], does["failureThreshold"] = p.SuccessThreshold, p.FailureThreshold
		out[name] = does.WithoutEmpty()
	}
	hooks := cmp.Or(c.Lifecycle, &corev1.Lifecycle{})
	start, err := actionOf(hooks.PostStart, c, at.Child("lifecycle", "postStart"))
	stop, failed := actionOf(hooks.PreStop, c, at.Child("lifecycle", "preStop"))
	out["lifecycle"] = object{"postStart": start, "preStop": stop}.WithoutEmpty()
	s := cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
	out["securityContext"] = object{
		"runAsUser": numberText(s.RunAsUser), "runAsGroup": numberText(s.RunAsGroup), "runAsNonRoot": s.RunAsNonRoot,
		"readOnlyRootFilesystem": s.ReadOnlyRootFilesystem, "allowPrivilegeEscalation": s.AllowPrivilegeEscalation,
	}.WithoutEmpty()
	return out.WithoutEmpty(), cmp.Or(err, failed)
}

// sizeOf returns the smallest size with room for a container. A limit takes precedence over a request.
func sizeOf(c *corev1.Container, at *field.Path) (object, error) {
	asked, out := sizing.Asked(nil, c.Resources), object{}
	for name, q := range asked {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage: // the API documents that ephemeral storage has no effect
		case "nvidia.com/gpu":
			out["nvidia-a16"] = q.String()
		default:
			return nil, errdefs.InvalidInputf("%s: %s: a workload has cpu, memory and nvidia.com/gpu, which is the A16", at, name)
		}
	}
	size, ok := sizing.Fit(sizes, sizing.Of(asked))
	if !ok {
		return nil, errdefs.InvalidInputf("%s: %s: the largest size is SP-8, of 48 CPUs and 256Gi for each container", at, sizing.Of(asked))
	}
	out["cpu"], out["memory"] = strconv.FormatInt(size.MilliCPU/1000, 10), strconv.FormatInt(size.Memory/sizing.Gi, 10)+"Gi"
	return out, nil
}

// environmentOf returns the environment of a container. A value that is not literally in the spec may come from a Secret, so it is stored as a
// secret. The variables of the API server are omitted, because workloads cannot reach it.
func environmentOf(c, full *corev1.Container, at *field.Path) (object, error) {
	written := map[string]string{}
	for i := range c.Env {
		written[c.Env[i].Name] = c.Env[i].Value
	}
	all := object{}
	for i := range full.Env {
		e := &full.Env[i]
		value, inSpec := written[e.Name]
		switch from := e.ValueFrom; {
		case !inSpec && strings.HasPrefix(e.Name, "KUBERNETES_"):
		case from == nil && (inSpec && value == e.Value || e.Value == ""):
			all[e.Name] = object{"value": e.Value}
		case from == nil:
			all[e.Name] = object{"secretValue": e.Value}
		case from.FieldRef != nil && strings.HasPrefix(from.FieldRef.FieldPath, "status.podIP"):
			all[e.Name] = object{"valueFrom": object{"instanceFieldRef": object{"fieldPath": ".ipAddress"}}}
		default:
			return nil, errdefs.InvalidInputf("%s: variable %s: an instance has its own address, and none of a host", at, e.Name)
		}
	}
	return all, nil
}

// actionOf returns the action of a probe or a hook. Nil stays nil.
func actionOf(h *corev1.LifecycleHandler, c *corev1.Container, at *field.Path) (object, error) {
	switch {
	case h == nil:
		return nil, nil
	case h.Exec != nil:
		return object{"exec": h.Exec}, nil
	case h.HTTPGet != nil && h.HTTPGet.Host == "":
		headers := map[string]string{}
		for _, k := range h.HTTPGet.HTTPHeaders { // repeated headers keep all values
			headers[k.Name] = strings.TrimPrefix(headers[k.Name]+", "+k.Value, ", ")
		}
		port, err := podspec.Port(h.HTTPGet.Port, c, at.Child("httpGet", "port"))
		return object{"httpGet": object{"path": cmp.Or(h.HTTPGet.Path, "/"), "port": port, "scheme": cmp.Or(h.HTTPGet.Scheme, corev1.URISchemeHTTP), "httpHeaders": headers}.WithoutEmpty()}, err
	case h.TCPSocket != nil && h.TCPSocket.Host == "":
		port, err := podspec.Port(h.TCPSocket.Port, c, at.Child("tcpSocket", "port"))
		return object{"tcpSocket": object{"port": port}}, err
	}
	return nil, errdefs.InvalidInputf("%s: a workload runs a command, or asks the container itself by HTTP or TCP", at)
}
