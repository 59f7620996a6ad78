// SPDX-License-Identifier: Apache-2.0

package cli

import (
	stdslog "log/slog"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// options has the effective settings. The table in flags.go has the origin and the meaning of each.
type options struct {
	ConfigFile string

	Kubeconfig          string
	KubeContext         string
	BootstrapKubeconfig string
	CertDir             string
	KubeAPIQPS          float32
	KubeAPIBurst        int

	NodeName        string
	Nodes           []string // patterns
	ShareNodes      string
	NodeIP          string
	OperatingSystem string
	ClusterDomain   string
	DisableTaint    bool
	NoLeaseGuard    bool
	TaintKey        string
	TaintValue      string
	TaintEffect     string

	RegisterWithTaints []string
	NodeLabels         map[string]string
	NodeAnnotations    map[string]string
	ProviderID         string

	Provider       string
	ProviderConfig string
	PodSyncWorkers int
	FullResync     time.Duration
	StartupTimeout time.Duration
	PodVisibility  time.Duration
	MissingPods    time.Duration

	FailUnsupported      bool
	AcceptUnenforced     []string
	DrainOnExit          bool
	DrainTimeout         time.Duration
	DrainCriticalTimeout time.Duration

	DisableKubeletAPI     bool
	ListenAddress         string
	Port                  int
	TLSCertFile           string
	TLSPrivateKeyFile     string
	ClientCAFile          string
	SelfSigned            bool
	ServerTLSBootstrap    bool
	TLSMinVersion         string
	TLSCipherSuites       []string
	NoAuthentication      bool
	ReviewPods            bool
	EnableProfiling       bool
	StreamIdleTimeout     time.Duration
	StreamCreationTimeout time.Duration
	MaxStreams            int
	MaxStreamsPerUser     int

	LogLevel    string
	LogFormat   string
	MetricsAddr string
	DebugAddr   string

	TraceEndpoint    string
	TraceServiceName string
	TraceTags        map[string]string
	TraceSampleRate  string

	klog klogFlags
	// ownLevel and klogLevel are the minimum levels of logged lines: of this program, and of the Kubernetes
	// libraries. startLogging makes them.
	ownLevel, klogLevel *stdslog.LevelVar

	// shown has the settings for /flagz. Set by resolve.
	shown map[string]string
	// nodeNames are the expanded Nodes; empty for a single node. Set by validate.
	nodeNames []string
	// taints are the parsed RegisterWithTaints. Set by validate.
	taints []corev1.Taint
	// tlsMinVersion and tlsCipherSuites are the parsed TLSMinVersion and TLSCipherSuites. Set by validate.
	tlsMinVersion   uint16
	tlsCipherSuites []uint16
}

// listenAddr returns the listen address of the kubelet API.
func (o *options) listenAddr() string {
	return net.JoinHostPort(o.ListenAddress, strconv.Itoa(o.Port))
}

// daemonPort returns the port of the kubelet API for providers.
func (o *options) daemonPort() int32 {
	if o.DisableKubeletAPI {
		return 0
	}
	return int32(o.Port)
}
