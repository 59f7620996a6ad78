// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	stdslog "log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/providers/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/admiralty"
	"github.com/virtual-kubelet/virtual-kubelet/providers/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/eci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/fargate"
	"github.com/virtual-kubelet/virtual-kubelet/providers/huaweicci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip"
	"github.com/virtual-kubelet/virtual-kubelet/providers/liqo"
	"github.com/virtual-kubelet/virtual-kubelet/providers/nomad"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm"
	"github.com/virtual-kubelet/virtual-kubelet/providers/stackpath"
	"github.com/virtual-kubelet/virtual-kubelet/providers/tensilekube"
	"github.com/virtual-kubelet/virtual-kubelet/providers/zun"
)

// loads returns a function that loads a configuration file and returns the configuration as JSON.
func loads[C any](load func(string) (C, error)) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		c, err := load(path)
		if err != nil {
			return nil, err
		}
		return json.Marshal(c)
	}
}

// TestClusterHasOneNameInAllProviders: the configuration key for the identity of the Kubernetes cluster is clusterName. Earlier keys still work, with
// a warning. A provider that is not in the table has no such key.
func TestClusterHasOneNameInAllProviders(t *testing.T) {
	defer func(l log.Logger) { log.L = l }(log.L)
	type named struct {
		apiVersion, kind, old string
		load                  func(string) ([]byte, error)
	}
	table := map[string]named{
		"aci":         {aci.APIVersion, aci.Kind, "", loads(aci.LoadConfig)},
		"admiralty":   {admiralty.APIVersion, admiralty.Kind, "clusterID", loads(admiralty.LoadConfig)},
		"azurebatch":  {azurebatch.APIVersion, azurebatch.Kind, "", loads(azurebatch.LoadConfig)},
		"eci":         {eci.APIVersion, eci.Kind, "", loads(eci.LoadConfig)},
		"fargate":     {fargate.APIVersion, fargate.Kind, "clusterID", loads(fargate.LoadConfig)},
		"huaweicci":   {huaweicci.APIVersion, huaweicci.Kind, "clusterID", loads(huaweicci.LoadConfig)},
		"kip":         {kip.APIVersion, kip.Kind, "", loads(kip.LoadConfig)},
		"liqo":        {liqo.APIVersion, liqo.Kind, "homeClusterID", loads(liqo.LoadConfig)},
		"nomad":       {nomad.APIVersion, nomad.Kind, "clusterID", loads(nomad.LoadConfig)},
		"slurm":       {slurm.APIVersion, slurm.Kind, "clusterID", loads(slurm.LoadConfig)},
		"stackpath":   {stackpath.APIVersion, stackpath.Kind, "", loads(stackpath.LoadConfig)},
		"tensilekube": {tensilekube.APIVersion, tensilekube.Kind, "clusterID", loads(tensilekube.LoadConfig)},
		"zun":         {zun.APIVersion, zun.Kind, "", loads(zun.LoadConfig)},
	}
	without := map[string]string{
		"cri": "its containers are on this machine", "process": "its containers are on this machine", "mock": "it keeps its pods in its memory",
		"interlink": "the protocol has no place for it", "plugin": "the plugin has a configuration of its own",
	}
	for _, p := range providers() {
		name := p.Name
		c, has := table[name]
		if !has {
			if without[name] == "" {
				t.Errorf("the table does not say how the configuration of provider %s names the cluster", name)
			}
			continue
		}
		for _, key := range []string{"clusterName", c.old} {
			if key == "" {
				continue
			}
			t.Run(name+"/"+key, func(t *testing.T) {
				var said bytes.Buffer
				log.L = slog.FromSlog(stdslog.New(stdslog.NewTextHandler(&said, nil)))
				file := filepath.Join(t.TempDir(), "provider.yaml")
				if err := os.WriteFile(file, []byte("apiVersion: "+c.apiVersion+"\nkind: "+c.kind+"\n"+key+": home-1\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				data, err := c.load(file)
				if err != nil {
					t.Fatal(err)
				}
				var config struct {
					ClusterName string `json:"clusterName"`
				}
				if err := json.Unmarshal(data, &config); err != nil || config.ClusterName != "home-1" {
					t.Errorf("got %q, %v", config.ClusterName, err)
				}
				if warned := strings.Contains(said.String(), "is called clusterName now"); warned != (key == c.old) {
					t.Errorf("it says %q", &said)
				}
			})
		}
	}
}
