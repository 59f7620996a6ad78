// SPDX-License-Identifier: Apache-2.0

// Command polled runs a virtual node on a backend that cannot report changes of pods, so the pod controller
// polls it.
//
// Note: no code here asks for polling. A provider without NotifyPods is polled.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	loglogrus "github.com/virtual-kubelet/virtual-kubelet/log/logrus"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`")
	nodeName := flag.String("nodename", "polled", "`name` of the node")
	flag.Parse()
	log.L = loglogrus.FromLogrus(logrus.NewEntry(logrus.StandardLogger()))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runNode(ctx, *kubeconfig, *nodeName); err != nil && !errors.Is(err, context.Canceled) {
		log.G(ctx).Fatal(err)
	}
}

// runNode runs the node until ctx ends.
func runNode(ctx context.Context, kubeconfig, nodeName string) error {
	n, err := nodeutil.NewNode(nodeName, newProvider, func(cfg *nodeutil.NodeConfig) error {
		cfg.KubeconfigPath = kubeconfig
		cfg.NumWorkers = 10
		return nil
	})
	if err != nil {
		return err
	}
	return n.Run(ctx)
}

// newProvider makes the provider and sets the capacity of its node. Without a node provider, the node is ready when the controllers are.
func newProvider(cfg nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("4"),
		corev1.ResourceMemory:           resource.MustParse("8Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("50Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	cfg.Node.Status.Capacity, cfg.Node.Status.Allocatable = size, size
	cfg.Node.Spec.Taints = []corev1.Taint{{
		Key: "virtual-kubelet.io/provider", Value: "polled", Effect: corev1.TaintEffectNoSchedule,
	}}
	return &provider{jobs: map[string]*job{}, startUp: time.Second}, nil, nil
}
