// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// onNomad is this project's agent with provider nomad, and an agent of Nomad that is server and client at once.
// The agent of Nomad and the programs of the pods are not counted.
type onNomad struct {
	*ours
	nomad string // the program
}

func newOnNomad(o *ours, cfg config) (agent, error) {
	a := onNomad{o, filepath.Join(cfg.bin, "nomad", "nomad")}
	o.as = "nomad"
	if _, err := os.Stat(a.nomad); err != nil {
		return nil, fmt.Errorf("nomad needs the agent of Nomad, which make bin/nomad/nomad builds: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("nomad needs root: %w", os.ErrPermission)
	}
	return a, nil
}

func (onNomad) describeSettings() string {
	return "virtual-kubelet --provider=nomad, all else by default; Nomad 1.10.0, server and client in one process, pods by its driver raw_exec"
}

// nomadProvider is the configuration of provider nomad.
const nomadProvider = `apiVersion: nomad.virtual-kubelet.io/v1alpha1
kind: NomadProviderConfiguration
address: http://%s
clusterName: bench
drivers: [raw_exec]
network: host
defaultResources: {cpu: 1m, memory: 16Mi}
`

// nomadAgent is the configuration of Nomad. It claims room for all pods, because their programs need no
// resources.
const nomadAgent = `
data_dir  = "%[1]s/data"
bind_addr = "127.0.0.1"
advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}
log_level = "WARN"
disable_update_check = true
leave_on_interrupt = false
leave_on_terminate = false
ports {
  http = %[2]d
  rpc  = %[3]d
  serf = %[4]d
}
server {
  enabled = true
  bootstrap_expect = 1
}
client {
  enabled = true
  network_interface = "lo"
  cpu_total_compute = 1000000
  memory_total_mb = 1000000
  disk_total_mb = 10000000
  disk_free_mb = 10000000
  gc_disk_usage_threshold = 99
  gc_inode_usage_threshold = 99
  gc_max_allocs = 10000
  cgroup_parent = "%[5]s"
  options = { "fingerprint.denylist" = "env_aws,env_azure,env_gce,env_digitalocean,landlock" }
}
plugin "raw_exec" {
  config { enabled = true }
}
`

func (a onNomad) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	n, err := a.startNomad(ctx, m, prefix)
	if err != nil {
		return nil, fmt.Errorf("start Nomad: %w", err)
	}
	node, err := a.startBefore(ctx, m, s, n, prefix)
	if err != nil {
		n.stop()
		return nil, err
	}
	node.backend, node.program = n, []string{"/bin/bash", "-c", telling, "telling", n.told}
	return node, nil
}

// startBefore starts the agent with a proxy between the two.
func (a onNomad) startBefore(ctx context.Context, m *machine, s scenario, n *nomad, prefix string) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a bind on this machine does not block
	if err != nil {
		return nil, fmt.Errorf("listen before Nomad: %w", err)
	}
	n.proxy = startProxy(l, "tcp", n.address)
	file := filepath.Join(n.dir, "provider.yaml")
	if err := writeConfig(file, fmt.Sprintf(nomadProvider, l.Addr())); err != nil {
		return nil, err
	}
	return a.startWith(ctx, m, s, prefix, []string{"--provider=nomad", "--provider-config=" + file})
}

// startNomad starts an agent of Nomad in its own namespaces for mounts and processes, so that all its processes
// end with it. It returns when the agent accepts jobs.
func (a onNomad) startNomad(ctx context.Context, m *machine, prefix string) (*nomad, error) {
	n := &nomad{dir: filepath.Join(m.base, "nomad", prefix), group: prefix, jobs: map[string]string{}, pods: map[string]lived{}}
	n.told = filepath.Join(n.dir, "told")
	if err := os.MkdirAll(n.told, 0o755); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	n.address = fmt.Sprintf("127.0.0.1:%d", ports[0])
	file := filepath.Join(n.dir, "agent.hcl")
	if err := writeConfig(file, fmt.Sprintf(nomadAgent, n.dir, ports[0], ports[1], ports[2], prefix)); err != nil {
		return nil, err
	}
	program, err := filepath.Abs(a.nomad)
	if err != nil {
		return nil, err
	}
	// The shell is the first process of the namespace, and waits for orphaned processes.
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "/bin/sh", "-c", `"$0" "$@" & wait $!`, program, "agent", "-config", file) //nolint:noctx // it is ended by stop
	if n.agent, err = startProgram("nomad agent", cmd, m.cfg.logs); err != nil {
		return nil, err
	}
	if err := n.awaitAnswer(ctx, "/v1/nodes", func(text string) bool {
		return strings.Contains(text, `"Status":"ready"`) && strings.Contains(text, `"raw_exec"`)
	}); err != nil {
		n.stop()
		return nil, err
	}
	if err := n.followEvents(ctx); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

// awaitAnswer waits until Nomad's answer fulfils the condition.
func (n *nomad) awaitAnswer(ctx context.Context, path string, ok func(string) bool) error {
	for {
		text, err := n.get(ctx, path)
		if err == nil && ok(text) {
			return nil
		}
		select {
		case <-n.agent.done:
			return n.agent.endReason()
		default:
		}
		if err := waitFor(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for Nomad: %w: %s", err, n.agent.said)
		}
	}
}

// openURL asks Nomad itself, which is not counted.
func (n *nomad) openURL(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask Nomad: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("ask Nomad: %s answers %s", path, answer.Status)
	}
	return answer, nil
}
