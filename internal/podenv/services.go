// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiService is the service of the API server, in the default namespace: every
// container gets its variables.
const apiService = "kubernetes"

// serviceVariables are the variables with the addresses of services. All containers of a pod share them.
type serviceVariables struct {
	names  []string // sorted
	values map[string]string
}

// serviceVariablesOf returns the variables of the services in the pod's namespace, unless the pod disables them, and of the API server's service. A
// service with the same name in the pod's namespace replaces the API server's service.
func serviceVariablesOf(reader Services, pod *corev1.Pod) (serviceVariables, error) {
	if reader == nil {
		return serviceVariables{}, nil
	}
	var services []*corev1.Service
	if pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks {
		own, err := reader.ListServices(pod.Namespace)
		if err != nil {
			return serviceVariables{}, fmt.Errorf("list services of namespace %s: %w", pod.Namespace, err)
		}
		services = slices.DeleteFunc(slices.Clone(own), func(s *corev1.Service) bool { return !hasClusterIP(s) })
	}
	if !slices.ContainsFunc(services, func(s *corev1.Service) bool { return s.Name == apiService }) {
		api, err := reader.GetService(metav1.NamespaceDefault, apiService)
		if err != nil && !apierrors.IsNotFound(err) {
			return serviceVariables{}, fmt.Errorf("read service %s/%s: %w", metav1.NamespaceDefault, apiService, err)
		}
		if err == nil && hasClusterIP(api) {
			services = append(services, api)
		}
	}
	// Different services can have variables with the same name ("a" with a port "b-port", and "a-port"), so the order determines the value.
	slices.SortFunc(services, func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) })
	values := make(map[string]string, 8*len(services))
	for _, service := range services {
		addServiceVariables(values, service)
	}
	return serviceVariables{names: slices.Sorted(maps.Keys(values)), values: values}, nil
}

func hasClusterIP(s *corev1.Service) bool {
	return s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone
}

// addServiceVariables adds the host and the ports, and for each port the variables of Docker container links.
func addServiceVariables(values map[string]string, service *corev1.Service) {
	prefix, ip := variableName(service.Name), service.Spec.ClusterIP
	values[prefix+"_SERVICE_HOST"] = ip
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		number := strconv.Itoa(int(port.Port))
		protocol := cmp.Or(string(port.Protocol), string(corev1.ProtocolTCP))
		scheme := strings.ToLower(protocol)
		url := scheme + "://" + net.JoinHostPort(ip, number)
		if i == 0 {
			values[prefix+"_SERVICE_PORT"] = number
			values[prefix+"_PORT"] = url
		}
		if port.Name != "" {
			values[prefix+"_SERVICE_PORT_"+variableName(port.Name)] = number
		}
		link := prefix + "_PORT_" + number + "_" + strings.ToUpper(protocol)
		values[link] = url
		values[link+"_PROTO"] = scheme
		values[link+"_PORT"] = number
		values[link+"_ADDR"] = ip
	}
}

func variableName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
