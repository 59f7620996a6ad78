// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

const (
	defaultListenAddr = ":10250"
	defaultResync     = time.Minute
)

// defaultConfig returns the initial configuration for options, and its client, or nil if the environment has none, because an option may
// still set a client.
func defaultConfig(name string) (NodeConfig, kubernetes.Interface) {
	cfg := NodeConfig{
		NodeSpec:             defaultNode(name),
		KubeconfigPath:       os.Getenv("KUBECONFIG"),
		InformerResyncPeriod: defaultResync,
		HTTPListenAddr:       defaultListenAddr,
		NumWorkers:           runtime.NumCPU(),
	}
	completeNode(&cfg.NodeSpec)
	fromEnv, err := ClientsetFromEnv(cfg.KubeconfigPath)
	if err != nil {
		return cfg, nil
	}
	cfg.Client = fromEnv
	return cfg, fromEnv
}

// complete sets defaults, and returns an error for invalid settings.
func (cfg *NodeConfig) complete(name string) error {
	if cfg.NumWorkers <= 0 {
		cfg.NumWorkers = runtime.NumCPU()
	}
	if cfg.HTTPListenAddr == "" {
		cfg.HTTPListenAddr = defaultListenAddr
	}
	if _, _, err := net.SplitHostPort(cfg.HTTPListenAddr); err != nil {
		return fmt.Errorf("HTTPListenAddr %q: %w", cfg.HTTPListenAddr, err)
	}
	if cfg.NodeSpec.Name == "" {
		cfg.NodeSpec.Name = name
	}
	completeNode(&cfg.NodeSpec)
	return nil
}

// heartbeatLimits returns the limit of heartbeats a second for all nodes together, and its burst.
func (cfg *NodeConfig) heartbeatLimits() (float32, int) {
	more := max(cfg.fleet-1, 0)
	return float32(besidesQPS + furtherNodeQPS*more), besidesBurst + 2*furtherNodeQPS*more
}

// renewInterval is the interval of lease renewals. With many nodes, the interval varies slightly per node, so that the renewals spread out
// again after a delay of all nodes.
func (cfg *NodeConfig) renewInterval() time.Duration {
	interval := time.Duration(node.DefaultLeaseDuration * node.DefaultRenewIntervalFraction * float64(time.Second))
	if cfg.fleet > 1 {
		interval += time.Duration(rand.Int64N(int64(interval)/10)) - interval/20
	}
	return interval
}
