// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/clientcert"
	"github.com/virtual-kubelet/virtual-kubelet/internal/kubeconfig"
	"github.com/virtual-kubelet/virtual-kubelet/internal/nilcheck"
)

const (
	// defaultKubeAPIQPS is the default limit of pod requests per second of a process. It is high because concurrency already bounds pod
	// writes, and because the API server limits all its clients with priority and fairness.
	defaultKubeAPIQPS = 5000
	// burstOfQPS is the default burst, as a multiple of the limit per second.
	burstOfQPS = 2
)

// Limits for heartbeats, events and reviews, each separate from the limit for pods. They are the same as for a kubelet.
const (
	besidesQPS   = 50
	besidesBurst = 100
	// furtherNodeQPS is the additional heartbeat limit for each further node of a fleet: one lease renewal every ten seconds, and a start
	// within seconds.
	furtherNodeQPS = 5
)

const (
	protobuf       = "application/vnd.kubernetes.protobuf"
	protobufOrJSON = protobuf + ",application/json"
)

// ClientsetFromEnv returns a client from the kubeconfig file at kubeConfigPath. When the path is empty or the
// file does not exist, it uses the service account of the pod of this process. The client sends up to 5,000
// requests a second (10,000 in a burst), speaks protobuf, and reloads a client certificate when its files are
// replaced.
func ClientsetFromEnv(kubeConfigPath string) (*kubernetes.Clientset, error) {
	cfg, err := restConfigFromEnv(kubeConfigPath, "")
	if err != nil {
		return nil, err
	}
	return clientset(withLimits(cfg, 0, 0))
}

// clientset returns a client. If cfg has a client certificate in files, the client has its own connections and reloads the certificate when
// the files change.
func clientset(cfg *rest.Config) (*kubernetes.Clientset, error) {
	cfg, err := clientcert.Reloading(cfg)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(cfg)
}

// NodeLeaseV1Client returns the client for the namespace of node leases.
func NodeLeaseV1Client(client kubernetes.Interface) coordinationclient.LeaseInterface {
	return client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
}

func restConfigFromEnv(path, context string) (*rest.Config, error) {
	cfg, err := readRESTConfig(path, context)
	if err != nil {
		return nil, fmt.Errorf("error getting rest client config: %w", err)
	}
	return cfg, nil
}

func readRESTConfig(path, context string) (*rest.Config, error) {
	cfg, err := kubeconfig.Load(path, context)
	if cfg != nil || err != nil {
		return cfg, err
	}
	cfg, err = rest.InClusterConfig()
	if err != nil && path != "" {
		return nil, fmt.Errorf("kubeconfig %s does not exist, and %w", path, err)
	}
	return cfg, err
}

// limits replaces zero limits for pods by their defaults; a negative qps means no limit.
func limits(qps float32, burst int) (float32, int) {
	if qps == 0 {
		qps = defaultKubeAPIQPS
	}
	if burst == 0 {
		burst = int(max(1, min(burstOfQPS*float64(qps), math.MaxInt32)))
	}
	return qps, burst
}

// withLimits returns a copy of cfg with the given limits for pods.
func withLimits(cfg *rest.Config, qps float32, burst int) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.RateLimiter = nil // a limiter in cfg would be shared, and take precedence over QPS and Burst
	cfg.QPS, cfg.Burst = limits(qps, burst)
	cfg.ContentType = protobuf
	cfg.AcceptContentTypes = protobufOrJSON
	return cfg
}

// checkClient refuses a client that would panic in the first request.
func checkClient(client kubernetes.Interface) error {
	if client == nil {
		return errors.New("no client provided")
	}
	if nilcheck.Is(client) {
		return fmt.Errorf("client is a nil %T; check the error of the function that made it", client)
	}
	return nil
}
