// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// fieldValue returns the value of a field of the pod. An address that is missing in the status is unknown, except for host addresses if the node's
// addresses are known.
func (r *resolver) fieldValue(ref *corev1.ObjectFieldSelector, path *field.Path) (string, answer, error) {
	pod := r.pod
	if ref.APIVersion != "" && ref.APIVersion != "v1" {
		return "", absent, errdefs.InvalidInputf("%s: version %q of the pod is not supported, use v1", path.Child("apiVersion"), ref.APIVersion)
	}
	path = path.Child("fieldPath")
	if name, key, ok := splitSubscript(ref.FieldPath); ok {
		return mapEntry(pod, name, key, path)
	}
	switch ref.FieldPath {
	case "metadata.name":
		return pod.Name, known, nil
	case "metadata.namespace":
		return pod.Namespace, known, nil
	case "metadata.uid":
		return string(pod.UID), known, nil
	case "metadata.labels":
		return formatMap(pod.Labels), known, nil
	case "metadata.annotations":
		return formatMap(pod.Annotations), known, nil
	case "spec.nodeName", "spec.host": // clients of the first v1 release write host
		return pod.Spec.NodeName, known, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, known, nil
	case "spec.restartPolicy":
		return string(pod.Spec.RestartPolicy), known, nil
	case "spec.schedulerName":
		return pod.Spec.SchedulerName, known, nil
	case "status.phase":
		return string(pod.Status.Phase), known, nil
	case "status.podIP":
		return firstIP(r.podIPs())
	case "status.podIPs":
		return joinIPs(r.podIPs())
	case "status.hostIP":
		return firstIP(r.hostIPs())
	case "status.hostIPs":
		return joinIPs(r.hostIPs())
	default:
		return "", absent, errdefs.InvalidInputf("%s: field %q of a pod cannot be a variable", path, ref.FieldPath)
	}
}

// mapEntry returns one label or annotation, or "" if the pod lacks it.
func mapEntry(pod *corev1.Pod, name, key string, path *field.Path) (string, answer, error) {
	var values map[string]string
	checked := key
	switch name {
	case "metadata.labels":
		values = pod.Labels
	case "metadata.annotations":
		// The API server checks the keys of annotations case-insensitively.
		values, checked = pod.Annotations, strings.ToLower(key)
	default:
		return "", absent, errdefs.InvalidInputf("%s: field %q of a pod has no keys", path, name)
	}
	if problems := validation.IsQualifiedName(checked); len(problems) > 0 {
		return "", absent, errdefs.InvalidInputf("%s: key %q of %s: %s", path, key, name, strings.Join(problems, "; "))
	}
	return values[key], known, nil
}

// splitSubscript splits name['key'].
func splitSubscript(fieldPath string) (name, key string, ok bool) {
	s, ok := strings.CutSuffix(fieldPath, "']")
	if !ok {
		return "", "", false
	}
	name, key, ok = strings.Cut(s, "['")
	return name, key, ok && name != ""
}

// formatMap writes one line key="value" for each entry, in the order of the keys, without a newline at the end.
func formatMap(m map[string]string) string {
	var out []byte
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			out = append(out, '\n')
		}
		out = append(out, key...)
		out = append(out, '=')
		out = strconv.AppendQuote(out, m[key])
	}
	return string(out)
}

func firstIP(ips []string) (string, answer, error) {
	if len(ips) == 0 {
		return "", unknown, nil
	}
	return ips[0], known, nil
}

func joinIPs(ips []string) (string, answer, error) {
	if len(ips) == 0 {
		return "", unknown, nil
	}
	return strings.Join(ips, ","), known, nil
}

// podIPs returns the addresses of the pod, the preferred address first. A pod in the network of its host has the
// addresses of the host.
func (r *resolver) podIPs() []string {
	status := &r.pod.Status
	switch {
	case len(status.PodIPs) > 0:
		ips := make([]string, 0, len(status.PodIPs))
		for _, ip := range status.PodIPs {
			ips = append(ips, ip.IP)
		}
		return ips
	case status.PodIP != "":
		return []string{status.PodIP}
	case r.pod.Spec.HostNetwork:
		return r.hostIPs()
	default:
		return nil
	}
}

// hostIPs returns the addresses of the host, the preferred address first: from the status of the pod, or else from the node.
func (r *resolver) hostIPs() []string {
	hosts := r.pod.Status.HostIPs
	if len(hosts) == 0 && r.pod.Status.HostIP != "" {
		return []string{r.pod.Status.HostIP}
	}
	if len(hosts) == 0 && r.cfg.HostIPs != nil {
		hosts = r.cfg.HostIPs()
	}
	ips := make([]string, 0, len(hosts))
	for _, ip := range hosts {
		ips = append(ips, ip.IP)
	}
	return ips
}
