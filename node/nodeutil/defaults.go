// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	defaultListenAddr = ":10250"
	defaultResync     = time.Minute
)

// defaultConfig returns the configuration that options start from, and the client in it,
// nil when the environment has none. That is no error here: an option may
// still bring one.
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

// complete fills in what WithNodeConfig or an option has left empty, and
// refuses what cannot work.
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
