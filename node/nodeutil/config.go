// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// NodeConfig is the configuration of a node. NewNode fills in defaults, passes the configuration to each option
// in order, and checks the result.
type NodeConfig struct {
	// Client talks to the API server. The default is made from KubeconfigPath. Before the options run, it is a
	// client made from $KUBECONFIG or the pod's service account, if possible.
	Client kubernetes.Interface

	// HeartbeatClient keeps the Node object and its lease up to date. The default is made from KubeconfigPath,
	// with a connection, limits and a time-out (10 s) of its own. If the program sets only Client, heartbeats
	// and events share its connection. They share its limits too, unless it is a *kubernetes.Clientset.
	HeartbeatClient kubernetes.Interface

	// KubeAPIQPS and KubeAPIBurst limit the requests a second of a client made from KubeconfigPath: separately
	// for writes of pods, and for reads and watches. 0 is 5,000, and for the burst twice KubeAPIQPS; a negative
	// KubeAPIQPS is no limit. Heartbeats and events have limits of their own, as low as a kubelet's.
	KubeAPIQPS   float32
	KubeAPIBurst int

	// NodeSpec is the node to register. An empty name becomes the name given
	// to NewNode; another name is an error. Versions, architecture, operating
	// system and the server's port are filled in where they are empty.
	NodeSpec corev1.Node

	// KubeconfigPath is the kubeconfig file for clients, or a list of files as in $KUBECONFIG; default
	// $KUBECONFIG. Without such a file, the pod's service account is used.
	KubeconfigPath string

	// KubeContext is the context of KubeconfigPath; the default is its current context.
	KubeContext string

	// InformerResyncPeriod is the interval at which every pod is checked again without a change. NewNode starts
	// from 1 minute; 0 turns it off.
	InformerResyncPeriod time.Duration

	// HTTPListenAddr is the listen address of the server, default ":10250". With port 0 the system chooses a
	// port, and the node publishes it.
	HTTPListenAddr string

	// Handler answers the requests to the server. The server runs only if both Handler and TLSConfig are set.
	//
	// Every request is authenticated unless the program explicitly disables this:
	//   - a handler from WithAuth is served as it is, also inside a wrapper that
	//     has a method Unwrap() http.Handler;
	//   - any other handler gets WebhookAuth around it, with Client and TLSConfig.ClientCAs. A WithAuth inside also applies;
	//   - but if it is a wrapper, such as api.InstrumentHandler, around the mux
	//     of AttachProviderRoutes, WebhookAuth goes around the provider's routes
	//     instead, for requests that no WithAuth has allowed. The program must
	//     guard other routes of that mux;
	//   - WithInsecureUnauthenticatedServer turns this off. A TLSConfig that requires verified client certificates does not.
	//
	// With AttachProviderRoutes, paths that routers read in different ways, such as //exec and /pods/../exec,
	// never reach Handler: they are 404, for authorized callers.
	Handler http.Handler

	// StreamIdleTimeout ends an exec, attach or port-forward without traffic; StreamCreationTimeout bounds its
	// beginning. 0 is the default of package api.
	StreamIdleTimeout     time.Duration
	StreamCreationTimeout time.Duration

	// MaxStreams and MaxStreamsPerUser bound the number of concurrent exec, attach and port-forward sessions on the server, for all nodes
	// of a Fleet together; a client beyond the limit gets 429. 0 is 2000 in total, and three quarters of the total per user: behind an API
	// server all users are one user, the API server. A negative value is no limit.
	MaxStreams        int
	MaxStreamsPerUser int

	// EnableProfiling serves /debug/pprof with the routes of AttachProviderRoutes, to callers with permission for nodes/proxy. It is off by
	// default: profiles cost time and reveal the work of the process.
	EnableProfiling bool

	// Flags has the flags for /flagz by name. It must hold no secret. Nil leaves the page out.
	Flags map[string]string

	// SetVerbosity changes the log verbosity. PUT /debug/flags/v calls it with the request body, for callers with permission for
	// nodes/proxy. It must be safe for concurrent use. Nil leaves the route out.
	SetVerbosity func(value string) error

	// DebugHTTP has no effect. It exists only for compatibility. AttachProviderRoutes always serves /runningpods/, as a kubelet does by
	// default. Programs rely on that route without having set the field, the route has the same authentication as the rest, and this port
	// offers no other debugging.
	DebugHTTP bool

	// TLSConfig has the certificate of the server and its request for client certificates; see WithTLSConfig. It
	// is cloned.
	TLSConfig *tls.Config

	// EventRecorder receives the events about pods. The default recorder sends them to the API server, from component
	// "<node>/pod-controller".
	EventRecorder record.EventRecorder

	// NumWorkers is the number of pods worked on at the same time. The default is the number of CPUs.
	NumWorkers int

	// NodeStatusUpdateErrorHandler is called when the node status cannot be written; see
	// node.WithNodeStatusUpdateErrorHandler.
	NodeStatusUpdateErrorHandler node.ErrorHandler

	// SkipDownwardAPIResolution passes pods to the provider with env and envFrom as written.
	SkipDownwardAPIResolution bool

	// ShareNodes, for a Fleet, is the name of a group of processes that share the same nodes evenly. Each process runs a part of the nodes,
	// and takes over nodes of processes that have ended. Every process must be able to reach the pods. The setting needs the lease guard.
	// By default the process runs all of its nodes, and waits for those that another process runs.
	ShareNodes string
	// DisableLeaseGuard lets this process act for the node even if another process does. By default the process
	// that holds the node's lease acts, and others wait for it; see node.WithNodeLeaseGuard.
	DisableLeaseGuard bool

	// PodControllerConfigOpts change the configuration of the pod controller, in order, after all its other
	// settings.
	PodControllerConfigOpts []PodControllerConfigOpt

	mux             api.ServeMux
	unauthenticated bool
	reviewPods      bool
	clientCAs       dynamiccertificates.CAContentProvider // nil: the authorities of TLSConfig
	servingRequests *servingRequests                      // nil: the serving certificate is in TLSConfig
	bootstrap       *bootstrap                            // nil: the program provides the credentials
	// renewCertificate is certrequest.Config.Renew, for tests.
	renewCertificate func(*x509.Certificate) time.Time
	fleet            int // number of nodes with shared clients; 0 is one
}

// NodeOpt changes a NodeConfig. If it returns an error, NewNode fails.
type NodeOpt func(*NodeConfig) error

// PodControllerConfigOpt changes the configuration of the pod controller. If it returns an error, NewNode fails.
type PodControllerConfigOpt func(*node.PodControllerConfig) error

// WithNodeConfig replaces the whole configuration by c, including the settings of earlier options.
func WithNodeConfig(c NodeConfig) NodeOpt {
	return func(cfg *NodeConfig) error {
		*cfg = c
		return nil
	}
}

// WithClient sets NodeConfig.Client. A nil client, or a nil pointer within the interface, is an error.
func WithClient(client kubernetes.Interface) NodeOpt {
	return func(cfg *NodeConfig) error {
		if err := checkClient(client); err != nil {
			return fmt.Errorf("WithClient: %w", err)
		}
		cfg.Client = client
		return nil
	}
}

// WithTLSConfig sets NodeConfig.TLSConfig to TLS 1.2 or newer, the cipher suites of DefaultServerCiphers, and optional client certificates,
// and then applies opts in order. A second WithTLSConfig adds to the first.
func WithTLSConfig(opts ...func(*tls.Config) error) NodeOpt {
	return func(cfg *NodeConfig) error {
		tlsConfig := defaultTLSConfig()
		if cfg.TLSConfig != nil {
			tlsConfig = cfg.TLSConfig.Clone()
		}
		for _, opt := range opts {
			if err := opt(tlsConfig); err != nil {
				return fmt.Errorf("TLS: %w", err)
			}
		}
		cfg.TLSConfig = tlsConfig
		return nil
	}
}

// AttachProviderRoutes mounts the routes of a kubelet, answered by the provider, at "/" of mux once the provider
// exists. The program serves them by setting NodeConfig.Handler to mux or to a handler around mux.
func AttachProviderRoutes(mux api.ServeMux) NodeOpt {
	return func(cfg *NodeConfig) error {
		cfg.mux = mux
		return nil
	}
}

// WithPodControllerConfigOverrides appends to NodeConfig.PodControllerConfigOpts.
func WithPodControllerConfigOverrides(opts ...PodControllerConfigOpt) NodeOpt {
	return func(cfg *NodeConfig) error {
		cfg.PodControllerConfigOpts = append(cfg.PodControllerConfigOpts, opts...)
		return nil
	}
}

// WithInsecureUnauthenticatedServer serves NodeConfig.Handler to every client at the port, if the handler does
// not authenticate by itself. Every such client can run commands in every pod of the node. It is for tests and
// for servers behind an authenticating proxy.
func WithInsecureUnauthenticatedServer() NodeOpt {
	return func(cfg *NodeConfig) error {
		cfg.unauthenticated = true
		return nil
	}
}

// WithPodReviews makes the authentication that NewNode adds to the server require a second permission, in the
// pod's namespace: see WebhookAuthConfig.ReviewPods. If the program has its own authentication, or none, NewNode
// returns an error.
func WithPodReviews() NodeOpt {
	return func(cfg *NodeConfig) error {
		cfg.reviewPods = true
		return nil
	}
}

// bootstrap has the arguments of WithTLSBootstrap.
type bootstrap struct{ kubeconfig, dir string }

// servingRequests has the arguments of WithServingCertificateRequests.
type servingRequests struct{ dir string }
