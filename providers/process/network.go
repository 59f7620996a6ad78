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
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/netns"
)

// network gives pods a network namespace each, by the plugins of a CNI network. A nil network is the machine's.
type network struct {
	list *libcni.NetworkConfigList
	cni  *libcni.CNIConfig
}

// cniPlugins are where plugins are, without a word in the configuration: upstream's place, and Debian's.
var cniPlugins = []string{"/opt/cni/bin", "/usr/lib/cni"}

// netnsFile is the network namespace in the directory of its sandbox.
const netnsFile = "netns"

// openNetwork reads the configuration, and asks the plugins whether they can do it.
func openNetwork(ctx context.Context, config Config) (*network, error) {
	if config.PodNetwork == "" {
		return nil, nil //nolint:nilnil // the machine's network is no error
	}
	fail := func(err error) (*network, error) { return nil, fmt.Errorf("podNetwork %s: %w", config.PodNetwork, err) }
	if os.Geteuid() != 0 || !config.runtime() {
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
	n := &network{list: list, cni: libcni.NewCNIConfigWithCacheDir(plugins, filepath.Join(config.StateDir, "cni"), nil)}
	if _, err := n.cni.ValidateNetworkList(ctx, list); err != nil {
		return fail(err)
	}
	return n, nil
}

// hostPorts tells whether a plugin of the network maps ports of the machine.
func (n *network) hostPorts() bool {
	return n != nil && slices.ContainsFunc(n.list.Plugins, func(p *libcni.PluginConfig) bool { return p.Network.Capabilities["portMappings"] })
}

// own tells whether pods of that configuration have a network of their own.
func (n *network) own(config *runtimeapi.PodSandboxConfig) bool {
	return n != nil && config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() != runtimeapi.NamespaceMode_NODE
}

// join makes the namespace of a sandbox and returns its addresses.
func (n *network) join(ctx context.Context, s *sandbox) ([]string, error) {
	if err := netns.New(s.netns()); err != nil {
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

// leave gives back what join got, also a part of it.
func (n *network) leave(ctx context.Context, s *sandbox) error {
	if n != nil {
		if err := n.cni.DelNetworkList(ctx, n.list, n.runtimeConf(s)); err != nil {
			return fmt.Errorf("network %s: %w", n.list.Name, err)
		}
	}
	return netns.Remove(s.netns())
}

// runtimeConf is what plugins are told of a pod. A namespace that is lost is not named: they give back what is on the
// machine.
func (n *network) runtimeConf(s *sandbox) *libcni.RuntimeConf {
	meta := s.config.GetMetadata()
	conf := &libcni.RuntimeConf{
		ContainerID: s.id, IfName: "eth0",
		Args: [][2]string{
			{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", meta.GetNamespace()}, {"K8S_POD_NAME", meta.GetName()},
			{"K8S_POD_INFRA_CONTAINER_ID", s.id}, {"K8S_POD_UID", meta.GetUid()},
		},
	}
	if netns.Alive(s.netns()) {
		conf.NetNS = s.netns()
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

func (s *sandbox) netns() string { return filepath.Join(s.dir, netnsFile) }

// dial connects with a port of the pod, as one of its own processes would.
func (s *sandbox) dial(ctx context.Context, port int32) (net.Conn, error) {
	var d net.Dialer
	number := strconv.Itoa(int(port))
	if len(s.addresses) == 0 {
		return d.DialContext(ctx, "tcp", net.JoinHostPort("localhost", number))
	}
	var conn net.Conn
	err := netns.Do(s.netns(), func() (err error) {
		// A number is dialled on this thread; a name would not be.
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

// lost tells whether the sandbox had a network of its own and has it no more: the machine was started again.
func (s *sandbox) lost() bool {
	_, err := os.Stat(s.netns())
	return len(s.addresses) > 0 && (err != nil || !netns.Alive(s.netns()))
}

// join gives the sandbox a network of its own; what an error leaves of it is given back.
func (r *Runtime) join(ctx context.Context, s *sandbox) (err error) {
	if s.addresses, err = r.network.join(ctx, s); err == nil {
		err = durable.WriteJSON(filepath.Join(s.dir, recordFile), s.record())
	}
	if err != nil {
		// Also when the caller gave up: addresses that nobody gives back are lost for ever.
		return errors.Join(err, r.network.leave(context.WithoutCancel(ctx), s), netns.Remove(s.netns()))
	}
	return nil
}

// networkStatus has the addresses of the sandbox, or of the machine.
func (r *Runtime) networkStatus(s *sandbox) *runtimeapi.PodSandboxNetworkStatus {
	if len(s.addresses) == 0 {
		return &runtimeapi.PodSandboxNetworkStatus{Ip: r.address}
	}
	status := &runtimeapi.PodSandboxNetworkStatus{Ip: s.addresses[0]}
	for _, address := range s.addresses[1:] {
		status.AdditionalIps = append(status.AdditionalIps, &runtimeapi.PodIP{Ip: address})
	}
	return status
}
