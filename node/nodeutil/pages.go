// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// addPages adds the pages about the node itself to routes.
func (n *Node) addPages(routes *api.PodHandlerConfig) {
	routes.Live = n.isAlive
	routes.HealthChecks = []api.HealthCheck{{Name: "syncloop", Check: n.syncs}}
	routes.GetDebug = n.debugPage
	routes.GetConfig = func() any { return n.kubeletConfiguration() }
	n.base.addPages(routes)
}

// addPages adds the pages common to all nodes of the process to routes.
func (b *base) addPages(routes *api.PodHandlerConfig) {
	routes.Version = b.common.NodeSpec.Status.NodeInfo.KubeletVersion
	routes.Profiling, routes.SetVerbosity = b.common.EnableProfiling, b.common.SetVerbosity
	if flags := b.common.Flags; flags != nil {
		routes.GetFlags = func() map[string]string { return maps.Clone(flags) }
	}
}

// isAlive answers /livez: it fails after the node has ended, because the node does not start again by itself.
func (n *Node) isAlive(context.Context) error {
	if n.life.hasEnded() {
		return errors.New("node has stopped")
	}
	return nil
}

// syncs answers /healthz/syncloop: it passes while this process, or the process that holds the node, syncs pods.
func (n *Node) syncs(context.Context) error {
	select {
	case <-n.pods.Done():
		return errors.New("pods are not worked on any more")
	default:
	}
	if _, yes := n.node.StandsBy(); yes {
		return nil
	}
	select {
	case <-n.pods.Ready():
		return nil
	default:
		return errors.New("pods are not worked on yet")
	}
}

// kubeletConfiguration returns the part of a kubelet's configuration that applies here, with the values in effect. It cannot describe a
// program's own Auth.
func (n *Node) kubeletConfiguration() *kubeletconfig.KubeletConfiguration {
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	idle := n.cfg.StreamIdleTimeout
	if idle <= 0 {
		idle = 4 * time.Hour
	}
	c := &kubeletconfig.KubeletConfiguration{
		TypeMeta:                       metav1.TypeMeta{APIVersion: kubeletconfig.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		EnableServer:                   ptr.To(n.server != nil),
		SyncFrequency:                  duration(n.cfg.InformerResyncPeriod),
		NodeStatusUpdateFrequency:      duration(node.DefaultPingInterval),
		NodeStatusReportFrequency:      duration(5 * time.Minute), // for a node with a lease, see node.DefaultStatusUpdateInterval
		NodeLeaseDurationSeconds:       node.DefaultLeaseDuration,
		StreamingConnectionIdleTimeout: duration(idle),
		EnableDebuggingHandlers:        ptr.To(true),
		EnableProfilingHandler:         ptr.To(n.cfg.EnableProfiling),
		EnableDebugFlagsHandler:        ptr.To(n.cfg.SetVerbosity != nil),
		EnableSystemLogHandler:         ptr.To(false),
		EnableSystemLogQuery:           ptr.To(false),
		RegisterNode:                   ptr.To(true),
		RegisterWithTaints:             n.registered.taints,
		ProviderID:                     n.registered.providerID,
		MaxPods:                        n.registered.pods,
	}
	if n.cfg.KubeAPIQPS > 0 {
		qps, burst := limits(n.cfg.KubeAPIQPS, n.cfg.KubeAPIBurst)
		c.KubeAPIQPS, c.KubeAPIBurst = ptr.To(int32(qps)), int32(burst) //nolint:gosec // limits of requests are small
	}
	if n.server != nil {
		n.describeServer(c)
	}
	return c
}

// describeServer fills in the settings of the server.
func (b *base) describeServer(c *kubeletconfig.KubeletConfiguration) {
	host, port, err := net.SplitHostPort(b.server.addr)
	if err == nil {
		c.Address = host
		if number, err := strconv.ParseInt(port, 10, 32); err == nil {
			c.Port = int32(number)
		}
	}
	if port := b.server.port.Load(); port != 0 {
		c.Port = port // the chosen port, if the configured port is 0
	}
	served := hardened(b.server.tls)
	c.TLSMinVersion = map[uint16]string{tls.VersionTLS12: "VersionTLS12", tls.VersionTLS13: "VersionTLS13"}[served.MinVersion]
	for _, suite := range served.CipherSuites {
		c.TLSCipherSuites = append(c.TLSCipherSuites, tls.CipherSuiteName(suite))
	}
	switch {
	case authenticates(b.common.Handler):
	case b.common.unauthenticated:
		c.Authentication.Anonymous.Enabled = ptr.To(true)
		c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	default:
		c.Authentication.Anonymous.Enabled = ptr.To(false)
		c.Authentication.Webhook = kubeletconfig.KubeletWebhookAuthentication{Enabled: ptr.To(true), CacheTTL: metav1.Duration{Duration: tokenCacheTTL}}
		c.Authorization = kubeletconfig.KubeletAuthorization{
			Mode: kubeletconfig.KubeletAuthorizationModeWebhook,
			Webhook: kubeletconfig.KubeletWebhookAuthorization{
				CacheAuthorizedTTL: metav1.Duration{Duration: allowCacheTTL}, CacheUnauthorizedTTL: metav1.Duration{Duration: denyCacheTTL},
			},
		}
	}
}
