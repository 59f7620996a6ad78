// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"encoding/json"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// networks is the part "cniconfig" of containerd's status: the networks of pods.
type networks struct {
	Networks []struct {
		IFName string
		Config struct {
			Name    string
			Plugins []struct {
				Network struct {
					Capabilities map[string]bool `json:"capabilities"`
				}
			}
		}
	}
}

// noHostPorts reports host ports as missing if no network of the runtime has a plugin for them: pods would start,
// but their host ports would not be reachable. A runtime that does not report its networks, or has none yet,
// counts as supporting host ports.
func noHostPorts(ctx context.Context, client *Client) map[capability.Feature]string {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	answer, err := client.Status(ctx, true)
	if err != nil {
		return nil // the node is not ready until the runtime answers
	}
	var all networks
	if err := json.Unmarshal([]byte(answer.GetInfo()["cniconfig"]), &all); err != nil {
		return nil
	}
	name := ""
	for _, n := range all.Networks {
		for _, p := range n.Config.Plugins {
			if p.Network.Capabilities["portMappings"] {
				return nil
			}
		}
		if n.IFName != "lo" {
			name = n.Config.Name
		}
	}
	if name == "" {
		return nil
	}
	why := "the runtime's network " + name + " has no plugin for host ports, such as portmap"
	return map[capability.Feature]string{capability.HostPorts: why, capability.HostPortMapping: why}
}
