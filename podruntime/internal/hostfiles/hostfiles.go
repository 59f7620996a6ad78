// SPDX-License-Identifier: Apache-2.0

package hostfiles

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Config is the configuration of a Files.
type Config struct {
	// ClusterDNS are the addresses of the cluster's DNS servers.
	ClusterDNS []string
	// ClusterDomain is the domain of the cluster's DNS; "" is cluster.local.
	ClusterDomain string
	// Nameserver replaces the machine's DNS servers for pods outside of its network; "" means no replacement.
	Nameserver string
	// ResolvConf is the resolver configuration of the machine; "" is /etc/resolv.conf. A missing file counts as
	// an empty one.
	ResolvConf string
	// Hosts is the file of the machine for pods on its network; "" is /etc/hosts.
	Hosts string
	// Recorder gets the events about limits and missing cluster DNS. Nil drops them.
	Recorder Recorder
}

// Recorder writes events.
type Recorder interface {
	Eventf(object runtime.Object, eventType, reason, format string, args ...any)
}

// Files makes the host files of pods. It is safe for concurrent use.
type Files struct{ cfg Config }

// New fills in defaults.
func New(cfg Config) *Files {
	cfg.ClusterDomain = cmp.Or(cfg.ClusterDomain, "cluster.local")
	cfg.ResolvConf = cmp.Or(cfg.ResolvConf, "/etc/resolv.conf")
	cfg.Hosts = cmp.Or(cfg.Hosts, "/etc/hosts")
	return &Files{cfg: cfg}
}

// Quietly returns a Files that records no events, for callers that need the settings again after the pod got its
// events.
func (f *Files) Quietly() *Files {
	cfg := f.cfg
	cfg.Recorder = nil
	return &Files{cfg: cfg}
}

func (f *Files) warnPod(pod *corev1.Pod, reason, format string, args ...any) {
	if f.cfg.Recorder != nil {
		f.cfg.Recorder.Eventf(pod, corev1.EventTypeWarning, reason, format, args...)
	}
}
