// SPDX-License-Identifier: Apache-2.0

// Command nodeutil runs a virtual node with an HTTPS server, assembled by package nodeutil: kubectl logs and exec work on its pods.
//
// It keeps its pods in memory, and exec prints the given command. Note: -ca-file should be the authority of the API server's client
// certificate. Otherwise, the API server is refused like every other client.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	logslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// options are the program's flags.
type options struct {
	kubeconfig, nodeName      string
	address, listen           string
	certFile, keyFile, caFile string
	startupTimeout            time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`")
	flag.StringVar(&o.nodeName, "nodename", "nodeutil", "`name` of the node")
	flag.StringVar(&o.address, "address", "127.0.0.1", "`IP` at which the API server reaches the node")
	flag.StringVar(&o.listen, "listen", ":10250", "`address` of the server")
	flag.StringVar(&o.certFile, "cert-file", "", "serving certificate `file`")
	flag.StringVar(&o.keyFile, "key-file", "", "key `file` of the serving certificate")
	flag.StringVar(&o.caFile, "ca-file", "", "`file` with the authority of client certificates")
	flag.DurationVar(&o.startupTimeout, "startup-timeout", time.Minute, "give up when the node is not ready by then")
	flag.Parse()
	log.L = logslog.FromSlog(slog.Default())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runNode(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		log.G(ctx).Fatal(err)
		os.Exit(1)
	}
}

// runNode runs the node until ctx ends.
func runNode(ctx context.Context, o options) error {
	client, err := nodeutil.ClientsetFromEnv(o.kubeconfig)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	n, err := nodeutil.NewNode(o.nodeName, newProvider(o.address),
		nodeutil.WithClient(client),
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(o.certFile, o.keyFile)),
		nodeutil.AttachProviderRoutes(mux),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.HTTPListenAddr = o.listen
			cfg.NumWorkers = 10
			auth, err := nodeutil.WebhookAuth(cfg.Client, o.nodeName, trustClientsOf(o.caFile))
			if err != nil {
				return err
			}
			cfg.Handler = api.InstrumentHandler(nodeutil.WithAuth(nodeutil.InstrumentAuth(auth), mux))
			return nil
		},
	)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { _ = n.Run(ctx) }()
	if err := n.WaitReady(ctx, o.startupTimeout); err != nil {
		cancel()
		<-n.Done()
		return err
	}
	log.G(ctx).WithField("node", o.nodeName).Info("Node is ready")
	<-n.Done()
	return n.Err()
}

// trustClientsOf accepts client certificates from the authority in a file, and reloads the file when it changes.
func trustClientsOf(caFile string) nodeutil.WebhookAuthOption {
	return func(cfg *nodeutil.WebhookAuthConfig) error {
		if caFile == "" {
			return nil
		}
		ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", caFile)
		if err != nil {
			return err
		}
		cfg.AuthnConfig.ClientCertificateCAContentProvider = ca
		return nil
	}
}

// newProvider returns the function that makes the provider. That function also describes the node.
func newProvider(address string) nodeutil.NewProviderFunc {
	return func(cfg nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		size := corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse("4"),
			corev1.ResourceMemory:           resource.MustParse("8Gi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("50Gi"),
			corev1.ResourcePods:             resource.MustParse("110"),
		}
		cfg.Node.Status.Capacity, cfg.Node.Status.Allocatable = size, size
		cfg.Node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		cfg.Node.Spec.Taints = []corev1.Taint{{
			Key: "virtual-kubelet.io/provider", Value: "nodeutil", Effect: corev1.TaintEffectNoSchedule,
		}}
		return &provider{pods: map[string]*corev1.Pod{}}, nil, nil
	}
}
