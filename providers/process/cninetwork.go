// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/libcni"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/netns"
)

// cniNetwork gives each pod a network namespace, which CNI plugins configure.
type cniNetwork struct {
	list *libcni.NetworkConfigList
	cni  *libcni.CNIConfig
}

// cniPlugins are the default directories of plugins: upstream's, and Debian's.
var cniPlugins = []string{"/opt/cni/bin", "/usr/lib/cni"}

// openCNI reads the configuration, and checks that the plugins support it.
func openCNI(ctx context.Context, config Config) (*cniNetwork, error) {
	fail := func(err error) (*cniNetwork, error) {
		return nil, fmt.Errorf("podNetwork %s: %w", config.PodNetwork, err)
	}
	if os.Geteuid() != 0 || !config.hasRuntime() {
		return fail(fmt.Errorf("it needs a daemon with the rights of root, and another isolation than %s", IsolationNone))
	}
	load := libcni.NetworkConfFromFile
	list, err := load(config.PodNetwork)
	if err != nil {
		return fail(err)
	}
	plugins := config.CNIPlugins
	if len(plugins) == 0 {
		plugins = cniPlugins
	}
	n := &cniNetwork{list: list, cni: libcni.NewCNIConfigWithCacheDir(plugins, filepath.Join(config.StateDir, "cni"), nil)}
	if _, err := n.cni.ValidateNetworkList(ctx, list); err != nil {
		return fail(err)
	}
	return n, nil
}

// hostPorts reports whether a plugin of the network maps host ports.
func (n *cniNetwork) hostPorts() bool {
	return slices.ContainsFunc(n.list.Plugins, func(p *libcni.PluginConfig) bool { return p.Network.Capabilities["portMappings"] })
}

// joinNetwork makes the namespace of a sandbox and returns its addresses.
func (n *cniNetwork) joinNetwork(ctx context.Context, s *sandbox) ([]string, error) {
	if err := netns.New(s.netnsPath()); err != nil {
		return nil, err
	}
	result, err := n.cni.AddNetworkList(ctx, n.list, n.runtimeConf(s))
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", n.list.Name, err)
	}
	current, err := types100.NewResultFromResult(result)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", n.list.Name, err)
	}
	var addresses []string
	for _, ip := range current.IPs {
		addresses = append(addresses, ip.Address.IP.String())
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("network %s: the plugins gave no address", n.list.Name)
	}
	return addresses, nil
}

// leaveNetwork releases everything that joinNetwork acquired, also after a joinNetwork that failed halfway.
func (n *cniNetwork) leaveNetwork(ctx context.Context, s *sandbox) error {
	if err := n.cni.DelNetworkList(ctx, n.list, n.runtimeConf(s)); err != nil {
		return fmt.Errorf("network %s: %w", n.list.Name, err)
	}
	return netns.Remove(s.netnsPath())
}

// runtimeConf returns the plugins' arguments for a pod. It leaves out a namespace that no longer exists: plugins
// then release the resources outside of it.
func (n *cniNetwork) runtimeConf(s *sandbox) *libcni.RuntimeConf {
	meta := s.config.GetMetadata()
	conf := &libcni.RuntimeConf{
		ContainerID: s.id, IfName: "eth0",
		Args: [][2]string{
			{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", meta.GetNamespace()}, {"K8S_POD_NAME", meta.GetName()},
			{"K8S_POD_INFRA_CONTAINER_ID", s.id}, {"K8S_POD_UID", meta.GetUid()},
		},
	}
	if netns.Alive(s.netnsPath()) {
		conf.NetNS = s.netnsPath()
	}
	var ports []map[string]any
	for _, p := range s.config.GetPortMappings() {
		if p.GetHostPort() <= 0 {
			continue
		}
		ports = append(ports, map[string]any{
			"hostPort": p.GetHostPort(), "containerPort": p.GetContainerPort(), "hostIP": p.GetHostIp(), "protocol": strings.ToLower(p.GetProtocol().String()),
		})
	}
	if len(ports) > 0 {
		conf.CapabilityArgs = map[string]any{"portMappings": ports}
	}
	return conf
}

// isLost reports whether the namespace of a sandbox was lost at the last reboot.
func (n *cniNetwork) isLost(s *sandbox) bool { return !netns.Alive(s.netnsPath()) }

// close does nothing: namespaces need no process.
func (n *cniNetwork) close(context.Context, bool) error { return nil }

// restoreLinks has nothing to do.
func (n *cniNetwork) restoreLinks(context.Context) {}

// run has nothing to do.
func (n *cniNetwork) run(context.Context) {}

// dialPort connects to a port of the pod, like one of its own processes.
func (s *sandbox) dialPort(ctx context.Context, port int32) (net.Conn, error) {
	var d net.Dialer
	number := strconv.Itoa(int(port))
	if len(s.addresses) == 0 {
		return d.DialContext(ctx, "tcp", net.JoinHostPort("localhost", number))
	}
	var conn net.Conn
	err := netns.Do(s.netnsPath(), func() (err error) {
		// Use IP addresses: Go would resolve a name on another thread, outside of the pod's namespace.
		for _, host := range []string{"127.0.0.1", "::1"} {
			var failed error
			if conn, failed = d.DialContext(ctx, "tcp", net.JoinHostPort(host, number)); failed == nil {
				return nil
			}
			err = errors.Join(err, failed)
		}
		return err
	})
	return conn, err
}
