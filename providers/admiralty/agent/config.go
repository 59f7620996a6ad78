// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/admiralty"
)

// The version and the kind of a configuration file of the agent.
const (
	APIVersion = admiralty.APIVersion
	Kind       = "AdmiraltyAgentConfiguration"
)

// Config is the configuration of the agent.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Targets are the targets for elected pods. Required.
	Targets []Target `json:"targets,omitempty"`
}

// Target is a node of provider admiralty and its configuration.
type Target struct {
	// Node is the name of the node here.
	Node string `json:"node"`
	// ProviderConfig is the path of the configuration file of the node, with its kubeconfig, placement and
	// constraints. Required.
	ProviderConfig string `json:"providerConfig,omitempty"`

	provider admiralty.Config
	access   *rest.Config
}

// format describes the configuration file of the agent.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_ADMIRALTY_AGENT"}

// LoadConfig reads the configuration file at path and the files that it refers to.
func LoadConfig(path string) (Config, error) {
	c, err := format.Load(path)
	if err != nil {
		return c, err
	}
	if len(c.Targets) == 0 {
		return c, errors.New("admiralty agent: targets: is missing: name the nodes of provider admiralty")
	}
	seen := map[string]bool{}
	for i := range c.Targets {
		t := &c.Targets[i]
		if t.Node == "" || t.ProviderConfig == "" || seen[t.Node] {
			return c, fmt.Errorf("admiralty agent: targets[%d]: want a node that no other one has, and its providerConfig", i)
		}
		seen[t.Node] = true
		if t.provider, err = admiralty.LoadConfig(t.ProviderConfig); err != nil {
			return c, fmt.Errorf("admiralty agent: target %s: %w", t.Node, err)
		}
		if err := t.openAccess(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// openAccess reads the client configuration for the target cluster.
func (t *Target) openAccess() (err error) {
	if t.provider, err = t.provider.Complete(t.Node); err != nil {
		return fmt.Errorf("admiralty agent: target %s: %w", t.Node, err)
	}
	if t.access, err = t.provider.Access(); err != nil {
		return fmt.Errorf("admiralty agent: target %s: %w", t.Node, err)
	}
	t.access.UserAgent = "virtual-kubelet-admiralty-agent"
	return nil
}
