// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/netns"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/podnet"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// userNetwork is the pod network that needs no privileges: one process of this user forwards the packets of all
// pods, and opens connections for them (see decision 52).
type userNetwork struct {
	process *networkProcess
	// denied are the prefixes that pods cannot reach, by configuration. nameservers are the DNS servers behind
	// the gateway.
	denied      []string
	nameservers func() []string
	// services returns the current addresses that are redirected.
	services func() []podnet.Service
	// tunnels is true if pods have network namespaces with a TUN interface, as with runc and crun. Otherwise the
	// supervisor of each sandbox holds the link.
	tunnels bool
	prefix  netip.Prefix
	gateway netip.Addr

	// configuring is held while the network process is configured, and links while the daemon attaches or
	// detaches pods. Probes take neither lock, because the process may take long to answer.
	configuring, links sync.Mutex
	// configured is the last configuration of the network process; guarded by configuring.
	configured podnet.Config

	mu sync.Mutex // acquired last
	// pods has the sandbox of each address in use; guarded by mu.
	pods map[netip.Addr]*sandbox
	// last is the address that was allocated last; guarded by mu.
	last netip.Addr
	// connection is the connection that configured the network process; guarded by mu.
	connection *podnet.Connection
	// lacking has the reason for each sandbox that could not be attached; guarded by mu.
	lacking map[string]string

	// every is the interval of checks for changes: followEvery.
	every time.Duration
	// tell records an event with the reason why a pod has no network. An empty reason means that the pod has a
	// network again.
	tell func(s *sandbox, why string)
	// told is the last recorded reason for each sandbox without a network; owned by sendChanges.
	told map[string]string
}

const (
	// followEvery is the interval of checks for changes of the configuration.
	followEvery = 10 * time.Second
	// silentFor is the time after which a network process that does not answer is killed: a hanging process
	// serves no pod.
	silentFor = time.Minute
)

// openUserNetwork starts the network process, or connects to the process of an earlier daemon.
func (r *Runtime) openUserNetwork(ctx context.Context) (podNetwork, error) {
	program, err := r.networkProgram(ctx)
	if err != nil || program == "" {
		return nil, err
	}
	prefix, err := r.podRange(ctx, machineNetworks(ctx))
	if err != nil {
		return nil, fmt.Errorf("podCIDR: %w", err)
	}
	n := &userNetwork{
		process: r.newNetworkProcess(program), denied: r.config.PodNetworkDenied, nameservers: machineNameservers, services: func() []podnet.Service { return r.services() },
		prefix: prefix, gateway: prefix.Addr().Next(), last: prefix.Addr().Next(), pods: map[netip.Addr]*sandbox{},
		tunnels: !r.oci.isGVisor(), every: followEvery, tell: func(s *sandbox, why string) { r.tellNetwork(s, why) },
	}
	if err := n.sendConfig(ctx); err != nil {
		return nil, fmt.Errorf("the network of pods; podNetwork: %s leaves pods in the machine's: %w", PodNetworkHost, err)
	}
	return n, nil
}

// networkProgram returns the path of the runsc that runs the network process. If there is none, it logs that pods
// are in the host network, and returns "".
func (r *Runtime) networkProgram(ctx context.Context) (string, error) {
	if r.oci.isGVisor() {
		return r.oci.Program, nil
	}
	program := cmp.Or(r.config.NetworkProgram, besideThis(runsc))
	err := netns.HasTunnels()
	if err == nil && program == "" {
		program, err = exec.LookPath(runsc)
	}
	if c := r.config; err != nil && (c.NetworkProgram != "" || c.PodCIDR != "" || len(c.PodNetworkDenied) > 0) {
		return "", fmt.Errorf("networkProgram, podCIDR and podNetworkDenied: pods get no network of their own: %w", err)
	}
	if err != nil {
		log.G(ctx).WithError(err).Warnf("process provider: pods are in the network of the machine; set podNetwork to a CNI network, or have %s with the network process beside this program", runsc)
		return "", nil
	}
	return program, nil
}

// sendConfig sends a changed configuration to the network process, and starts a network process if there is none.
func (n *userNetwork) sendConfig(ctx context.Context) error {
	n.configuring.Lock()
	defer n.configuring.Unlock()
	config := podnet.Config{
		Range: n.prefix.String(), Gateway: n.gateway.String(), MTU: podnet.MTU,
		Nameservers: n.nameservers(), Denied: slices.Concat([]string{}, n.denied), Services: n.services(),
	}
	if n.isConnected() && reflect.DeepEqual(config, n.configured) {
		return nil
	}
	connection, err := n.process.sendConfig(ctx, config)
	if err != nil {
		return err
	}
	n.configured = config
	n.setConnection(connection)
	return nil
}

// setConnection replaces the connection by another one, or by none.
func (n *userNetwork) setConnection(connection *podnet.Connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.connection != nil {
		n.connection.Close()
	}
	n.connection = connection
}

func (n *userNetwork) isConnected() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.connection != nil
}

// joinNetwork allocates an address for a sandbox. With tunnels it also attaches the sandbox; otherwise the
// supervisor of the sandbox does.
func (n *userNetwork) joinNetwork(ctx context.Context, s *sandbox) ([]string, error) {
	if err := n.sendConfig(ctx); err != nil {
		return nil, err
	}
	address, err := n.takeAddress(s)
	if err != nil {
		return nil, err
	}
	// A daemon that was killed before it recorded an attached pod has left the pod attached.
	if err := podnet.Detach(ctx, n.process.socket, address.String()); err != nil {
		return nil, err
	}
	if n.tunnels {
		if err := netns.New(s.netnsPath()); err != nil {
			return nil, err
		}
		if err := n.attachLink(ctx, s, address); err != nil {
			return nil, err
		}
	}
	return []string{address.String()}, nil
}

func (n *userNetwork) takeAddress(s *sandbox) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for address := n.nextAddress(n.last); ; address = n.nextAddress(address) {
		if n.pods[address] == nil {
			n.pods[address], n.last = s, address
			return address, nil
		}
		if address == n.last {
			return address, fmt.Errorf("every address in %s is taken: set podCIDR to a larger range", n.prefix)
		}
	}
}

// attachLink attaches the network namespace of a sandbox to the network. It does nothing if the sandbox is
// attached.
func (n *userNetwork) attachLink(ctx context.Context, s *sandbox, address netip.Addr) error {
	n.links.Lock()
	defer n.links.Unlock()
	if !n.hasAddress(address, s) || !netns.Alive(s.netnsPath()) { // the pod has left the network, or has not joined yet
		return nil
	}
	link, err := netns.OpenTunnel(s.netnsPath(), address.String(), podnet.MTU)
	if errors.Is(err, syscall.EBUSY) {
		return nil
	}
	if err != nil {
		return err
	}
	defer link.Close()
	return podnet.Keep(ctx, n.process.socket, n.processPod(s, address.String()), link)
}

// hasAddress reports whether a sandbox has the address.
func (n *userNetwork) hasAddress(address netip.Addr, s *sandbox) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	other := n.pods[address]
	return other != nil && other.id == s.id
}

// restoreLinks attaches the sandboxes in network namespaces again after a restart of the network process. A failed
// attachment does not stop the others: a pod with NET_ADMIN may have removed or replaced its own interface.
func (n *userNetwork) restoreLinks(ctx context.Context) {
	if !n.tunnels {
		return
	}
	n.mu.Lock()
	pods := maps.Clone(n.pods)
	n.mu.Unlock()
	lacking := map[string]string{}
	for address, s := range pods {
		if err := n.attachLink(ctx, s, address); err != nil {
			lacking[s.id] = err.Error()
		}
	}
	if ctx.Err() != nil { // a daemon that ends does not know the state of the network
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lacking = lacking
}

// tellLacking reports pods that have lost their network, and pods that have it again, once for each reason.
func (n *userNetwork) tellLacking(ctx context.Context) {
	n.mu.Lock()
	pods, lacking := maps.Clone(n.pods), n.lacking
	n.mu.Unlock()
	told := map[string]string{}
	for _, s := range pods {
		why := lacking[s.id]
		if !n.tunnels {
			why = shim.NetworkError(s.supervisorDir())
		}
		if why != "" {
			told[s.id] = why
		}
		if why == n.told[s.id] {
			continue
		}
		if why != "" {
			log.G(ctx).Errorf("process provider: pod %s has no network; it is tried again: %s", n.processPod(s, "").Name, why)
		}
		n.tell(s, why)
	}
	n.told = told
}

// nextAddress returns the address to try after the given one, in turn, so a released address is reused as late as
// possible.
func (n *userNetwork) nextAddress(address netip.Addr) netip.Addr {
	next := address.Next()
	if !n.prefix.Contains(next.Next()) { // the last address is the broadcast address
		return n.gateway.Next()
	}
	return next
}

// leaveNetwork detaches a sandbox and releases its address.
func (n *userNetwork) leaveNetwork(ctx context.Context, s *sandbox) error {
	n.links.Lock()
	defer n.links.Unlock()
	address, ok := n.addressOf(s)
	if !ok {
		return nil
	}
	if n.tunnels && n.isConnected() { // a restarted network process does not know the address
		if err := podnet.Detach(ctx, n.process.socket, address.String()); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, address)
	return nil
}

func (n *userNetwork) addressOf(s *sandbox) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for address, other := range n.pods {
		if other.id == s.id {
			return address, true
		}
	}
	return netip.Addr{}, false
}

// isLost reserves the address of a sandbox of an earlier daemon. It returns true if the sandbox cannot continue
// in this network.
func (n *userNetwork) isLost(s *sandbox) bool {
	address, err := netip.ParseAddr(s.addresses[0])
	if err != nil || !n.prefix.Contains(address) || len(s.addresses) != 1 {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if taken := n.pods[address]; taken != nil && taken.id != s.id || n.tunnels && !netns.Alive(s.netnsPath()) {
		return true
	}
	if s.held {
		n.pods[address] = s
	}
	return false
}

func (n *userNetwork) hostPorts() bool { return true }

// run restarts the network process whenever it ends, and sends configuration changes to it, until ctx ends. The
// supervisors of sandboxes attach to the new process.
func (n *userNetwork) run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { n.sendChanges(ctx) })
	for n.waitForEnd(ctx) {
		for err := n.sendConfig(ctx); err != nil && ctx.Err() == nil; err = n.sendConfig(ctx) {
			log.G(ctx).WithError(err).Error("process provider: start the network of pods again; it is tried again in 1 s")
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		n.restoreLinks(ctx)
	}
}

// sendChanges sends configuration changes to the network process until ctx ends. After its start the daemon has
// to read the services first, and running pods need them even if no new pod starts.
func (n *userNetwork) sendChanges(ctx context.Context) {
	again := time.NewTicker(n.every)
	defer again.Stop()
	for {
		if n.isConnected() { // else run starts a network process
			if err := n.sendConfig(ctx); err != nil && ctx.Err() == nil {
				log.G(ctx).WithError(err).Errorf("process provider: tell the network process its configuration; it is tried again in %v", n.every)
			}
			if err := n.endSilent(ctx, silentFor); err != nil {
				log.G(ctx).WithError(err).Error("process provider: end the network process, which does not answer")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		n.mu.Lock()
		lacking := len(n.lacking) > 0
		n.mu.Unlock()
		if lacking {
			n.restoreLinks(ctx)
		}
		n.tellLacking(ctx)
	}
}

// endSilent kills the network process if it does not answer within patience. run starts another process.
func (n *userNetwork) endSilent(ctx context.Context, patience time.Duration) error {
	n.configuring.Lock() // the network process may be replaced during its configuration
	defer n.configuring.Unlock()
	var err error
	for begin := time.Now(); n.isConnected() && time.Since(begin) < patience; {
		asking, cancel := context.WithTimeout(ctx, patience)
		err = podnet.CheckVersion(asking, n.process.socket)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
			return nil // the network process answers, or has ended, which run detects
		}
	}
	if err == nil || !n.isConnected() {
		return nil
	}
	log.G(ctx).WithError(err).Errorf("process provider: the network process has not answered for %v, and is ended", patience)
	return n.process.end(ctx)
}

// waitForEnd waits for the end of the network process. It returns true when the process has ended or may have
// been replaced, and false when ctx ends.
func (n *userNetwork) waitForEnd(ctx context.Context) bool {
	n.mu.Lock()
	connection := n.connection
	n.mu.Unlock()
	if connection == nil {
		return ctx.Err() == nil
	}
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	connection.Wait()
	if !stop() {
		return false
	}
	if n.dropConnection(connection) {
		log.G(ctx).Warnf("process provider: the network process has ended, and is started again; connections of pods have ended with it. Its log is %s", n.process.log)
	}
	return true
}

// dropConnection drops a connection that has ended, and reports whether it was the newest one.
func (n *userNetwork) dropConnection(connection *podnet.Connection) bool {
	connection.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.connection != connection {
		return false
	}
	n.connection = nil
	return true
}

// close ends the network process, unless pods still use it.
func (n *userNetwork) close(ctx context.Context, used bool) error {
	n.configuring.Lock()
	defer n.configuring.Unlock()
	n.setConnection(nil)
	if used {
		return nil
	}
	return n.process.end(ctx)
}

// supervisorLink returns the settings with which the supervisor of a sandbox connects the sandbox to the network.
func (n *userNetwork) supervisorLink(s *sandbox) *shim.Network {
	return &shim.Network{
		Socket: n.process.socket, Pod: n.processPod(s, s.addresses[0]),
		Link: podnet.Link{Address: s.addresses[0], Gateway: n.gateway.String(), MTU: podnet.MTU},
	}
}

// processPod returns the description of a pod for the network process.
func (n *userNetwork) processPod(s *sandbox, address string) podnet.Pod {
	meta := s.config.GetMetadata()
	pod := podnet.Pod{Name: meta.GetNamespace() + "/" + meta.GetName(), Address: address, HostPorts: []podnet.HostPort{}}
	for _, p := range s.config.GetPortMappings() {
		if p.GetHostPort() > 0 {
			pod.HostPorts = append(pod.HostPorts, podnet.HostPort{
				Protocol: strings.ToLower(p.GetProtocol().String()), HostIP: p.GetHostIp(),
				HostPort: uint16(p.GetHostPort()), Port: uint16(p.GetContainerPort()), //nolint:gosec // the API server accepts only valid ports
			})
		}
	}
	return pod
}

// refuseHostPorts refuses host ports that the network process cannot forward.
func refuseHostPorts(config *runtimeapi.PodSandboxConfig) error {
	for _, p := range config.GetPortMappings() {
		if p.GetHostPort() > 0 && p.GetProtocol() == runtimeapi.Protocol_SCTP {
			return fmt.Errorf("hostPort %d: protocol SCTP is not supported by the network of pods", p.GetHostPort())
		}
	}
	return nil
}

// HasPod reports whether the address belongs to a pod. HasPod and the methods below serve probes: see
// podruntime.Config.Pods.
func (n *userNetwork) HasPod(address netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[address] != nil
}

// DialPod opens a TCP connection to a port of a pod.
func (n *userNetwork) DialPod(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return podnet.Dial(ctx, n.process.socket, to.Addr().String(), to.Port())
}

// CheckReachable returns an error for addresses that pods cannot reach: the machine's addresses, denied prefixes,
// and IPv6.
func (n *userNetwork) CheckReachable(address netip.Addr) error {
	has := func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(address)
	}
	addresses, err := net.InterfaceAddrs()
	switch {
	case err != nil:
		return fmt.Errorf("find out whether %s is an address of the machine: %w", address, err)
	case address.IsLoopback(), address.IsUnspecified(), slices.ContainsFunc(addresses, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == address
	}):
		return fmt.Errorf("%s is an address of the machine, which pods do not reach; leave out host to ask the pod itself", address)
	case !address.Is4():
		return fmt.Errorf("%s is an address of IPv6, which pods do not reach", address)
	case n.prefix.Contains(address):
		return fmt.Errorf("%s is in the range of pods, and no pod is reached there: host must be the address of one, not a name", address)
	case slices.ContainsFunc(n.denied, has):
		return fmt.Errorf("%s is denied to pods (podNetworkDenied)", address)
	}
	return nil
}
