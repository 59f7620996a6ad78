// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerdtest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Options are the options of a containerd.
type Options struct {
	// Bridge is the name of the bridge of the pods' network; "" means an own bridge.
	Bridge string
	// Subnet is the network of pods, in the form 10.0.0.0/24; "" means an own network.
	Subnet string
	// CgroupParent is the cgroup for pods; "" means an own group. A program with a different temporary directory
	// than its neighbours must set it, because it does not share their numbers.
	CgroupParent string
	// Masquerade lets pods reach other machines, with the address of this machine.
	Masquerade bool
	// Registries is a directory with the configuration of registries, as containerd's config_path; "" means
	// none.
	Registries string
	// Program is another containerd than the one in PATH.
	Program string
	// NetworkNamespace is the file of containerd's network namespace; "" means the namespace of this process.
	NetworkNamespace string
}

// pauseImage is the image of sandboxes; no registry has it.
const pauseImage = "vk.test/pause:1"

// restrict_oom_score_adj keeps runc from lowering its OOM score, because many sandboxes lack the right to do so.
const daemonConfig = `version = 2
root = %[1]q
state = %[2]q
[grpc]
  address = %[3]q
[ttrpc]
  address = %[4]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[5]q
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  netns_mounts_under_state_dir = true
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %[6]q
  conf_dir = %[7]q
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = %[8]q
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  Root = %[9]q
[plugins."io.containerd.internal.v1.opt"]
  path = %[10]q
`

const networkConfig = `{
  "cniVersion": "1.0.0", "name": %[1]q,
  "plugins": [
    {"type": "bridge", "bridge": %[2]q, "isGateway": true, "hairpinMode": true, "ipMasq": %[3]t,
     "ipam": {"type": "host-local", "dataDir": %[4]q, "ranges": [[{"subnet": %[5]q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// writeConfig writes the files that containerd and the network plugins read.
func (c *Containerd) writeConfig() error {
	bin, err := pluginFolder()
	if err != nil {
		return err
	}
	s := c.slot
	daemon := fmt.Sprintf(daemonConfig, s.filePath("root"), s.filePath("state"), c.socketPath(), c.socketPath()+".ttrpc", pauseImage,
		bin, s.filePath("cni"), c.options.Registries, s.filePath("runc"), s.filePath("opt"))
	network := fmt.Sprintf(networkConfig, c.Bridge, c.Bridge, c.options.Masquerade, s.filePath("ipam"), c.options.Subnet)
	for name, content := range map[string]string{"containerd.toml": daemon, "cni/10-pods.conflist": network} {
		path := s.filePath(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("configure containerd: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("configure containerd: %w", err)
		}
	}
	return nil
}

func (c *Containerd) socketPath() string { return c.slot.filePath("c.sock") }

// Endpoint returns the address of the runtime, in the form unix:///path.
func (c *Containerd) Endpoint() string { return "unix://" + c.socketPath() }
