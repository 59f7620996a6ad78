// SPDX-License-Identifier: Apache-2.0

package hostfiles

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Config is what a Files is made from.
type Config struct {
	// ClusterDNS are the addresses of the cluster's DNS servers.
	ClusterDNS []string
	// ClusterDomain is the domain of the cluster's DNS; "" is cluster.local.
	ClusterDomain string
	// ResolvConf is the resolver configuration of the machine; "" is /etc/resolv.conf, and a file that does
	// not exist is an empty one.
	ResolvConf string
	// Hosts is the file of the machine that pods on its network get; "" is /etc/hosts.
	Hosts string
	// Recorder gets the events about limits and missing cluster DNS. Nil drops them.
	Recorder record.EventRecorder
}

// Files makes the host files of pods. Its methods can be called from any goroutine.
type Files struct{ cfg Config }

// New fills in defaults.
func New(cfg Config) *Files { return &Files{cfg: cfg} }

// Hostname returns what the sandbox of the pod is to be called; "" is for a pod on the network of the machine, which has the
// machine's name.
func (f *Files) Hostname(pod *corev1.Pod) (string, error) { return "", nil }

// DNS returns the DNS settings of the pod's sandbox. Limits that are exceeded, and a cluster DNS that is not
// there, are events about the pod.
func (f *Files) DNS(pod *corev1.Pod) (*runtimeapi.DNSConfig, error) { return nil, nil }

// Mount writes /etc/hosts for the pod into dir, the pod's own directory, and returns its mount; nil if the container has
// a mount there itself, or the pod has no address yet.
func (f *Files) Mount(dir string, pod *corev1.Pod, container *corev1.Container, ips []string) (*runtimeapi.Mount, error) {
	return nil, nil
}
