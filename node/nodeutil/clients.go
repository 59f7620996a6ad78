// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/clientcert"
)

// clients has separate clients of the API server for pod writes (and everything else), watches, heartbeats and events, so that none delays
// another.
type clients struct {
	main kubernetes.Interface
	// watches also reads objects. It has its own connection: on a connection with many writes, the API server considers the pod watch too
	// slow and ends it.
	watches kubernetes.Interface
	nodes   corev1client.NodeInterface
	leases  coordinationclient.LeaseInterface
	events  corev1client.EventsGetter
}

// connect makes the clients for cfg, without a request. fromEnv is the client visible to options before they ran. If cfg still has this
// client, no option has set another.
func connect(cfg *NodeConfig, fromEnv kubernetes.Interface, who *clientCert) (*clients, error) {
	var c *clients
	var err error
	chosen := cfg.Client != nil && cfg.Client != fromEnv
	switch {
	case who != nil && (chosen || cfg.HeartbeatClient != nil):
		return nil, errors.New("WithTLSBootstrap makes the clients of the node; leave Client and HeartbeatClient to it")
	case who != nil:
		if c, err = clientsOf(cfg, who.config, clientcert.Awaiting); err == nil {
			who.own = c.main
		}
	case chosen:
		c, err = clientsFrom(cfg)
	default:
		c, err = clientsFromPath(cfg)
	}
	if err != nil {
		return nil, err
	}
	if hb := cfg.HeartbeatClient; hb != nil {
		if err := checkClient(hb); err != nil {
			return nil, fmt.Errorf("heartbeats: %w", err)
		}
		c.nodes, c.leases = hb.CoreV1().Nodes(), NodeLeaseV1Client(hb)
	}
	return c, nil
}

// clientsFrom makes separate clients from the program's client, as far as possible.
func clientsFrom(cfg *NodeConfig) (*clients, error) {
	main := cfg.Client
	if err := checkClient(main); err != nil {
		return nil, err
	}
	c := &clients{
		main:    main,
		watches: main,
		nodes:   main.CoreV1().Nodes(),
		leases:  NodeLeaseV1Client(main),
		events:  main.CoreV1(),
	}
	// Only for the plain client: another implementation may add behavior to its methods.
	if set, ok := main.(*kubernetes.Clientset); ok {
		core, coordination := set.CoreV1().RESTClient(), set.CoordinationV1().RESTClient()
		limiter := flowcontrol.NewTokenBucketRateLimiter(cfg.heartbeatLimits())
		c.nodes = corev1client.New(limited(core, corev1.SchemeGroupVersion, heartbeatTimeout, limiter)).Nodes()
		limiter = flowcontrol.NewTokenBucketRateLimiter(cfg.heartbeatLimits())
		c.leases = coordinationclient.New(limited(coordination, coordinationv1.SchemeGroupVersion, heartbeatTimeout, limiter)).
			Leases(corev1.NamespaceNodeLease)
		c.events = corev1client.New(unshared(core, corev1.SchemeGroupVersion, heartbeatTimeout))
	}
	return c, nil
}

// clientsFromPath makes all clients from one kubeconfig or service account.
func clientsFromPath(cfg *NodeConfig) (*clients, error) {
	base, err := readRESTConfig(cfg.KubeconfigPath, cfg.KubeContext)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return clientsOf(cfg, base, clientcert.Reloading)
}

// clientsOf makes all clients from base. follow returns a configuration that reloads its files, see clientcert.
func clientsOf(cfg *NodeConfig, base *rest.Config, follow func(*rest.Config) (*rest.Config, error)) (*clients, error) {
	clientset := func(cfg *rest.Config) (*kubernetes.Clientset, error) {
		cfg, err := follow(cfg)
		if err != nil {
			return nil, err
		}
		return kubernetes.NewForConfig(cfg)
	}
	shared, err := follow(base)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	main, err := kubernetes.NewForConfig(withLimits(shared, cfg.KubeAPIQPS, cfg.KubeAPIBurst))
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	watches, err := clientset(onOwnConnection(withLimits(base, cfg.KubeAPIQPS, cfg.KubeAPIBurst)))
	if err != nil {
		return nil, fmt.Errorf("make client for watches: %w", err)
	}
	qps, burst := cfg.heartbeatLimits()
	heartbeats, err := clientset(withLimits(heartbeatConfig(base, heartbeatTimeout), qps, burst))
	if err != nil {
		return nil, fmt.Errorf("make client for heartbeats: %w", err)
	}
	events, err := kubernetes.NewForConfig(withLimits(shared, besidesQPS, besidesBurst))
	if err != nil {
		return nil, fmt.Errorf("make client for events: %w", err)
	}
	return &clients{
		main:    main,
		watches: watches,
		nodes:   heartbeats.CoreV1().Nodes(),
		leases:  NodeLeaseV1Client(heartbeats),
		events:  events.CoreV1(),
	}, nil
}
