// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/podnet"
)

// servicesOf returns a function that lists the addresses that the pod network redirects: the Service of the API
// server, and the cluster DNS. Pods reach these servers even if they are on the machine, but nothing else on the
// machine.
func servicesOf(in cli.ProviderInput, config Config) func() []podnet.Service {
	server := lastNumeric{resolve: resolveIPv4}
	return func() []podnet.Service {
		services := []podnet.Service{}
		for _, server := range config.ClusterDNS {
			if ip, err := netip.ParseAddr(server); err != nil || !ip.Is4() {
				continue // the pod network has no IPv6
			}
			for _, protocol := range []string{"tcp", "udp"} {
				services = append(services, podnet.Service{Protocol: protocol, Address: server, Port: 53, Target: net.JoinHostPort(server, "53")})
			}
		}
		return append(services, apiServerService(in, &server)...)
	}
}

// apiServerService redirects the Service default/kubernetes to the address at which the node reaches the API
// server.
func apiServerService(in cli.ProviderInput, server *lastNumeric) []podnet.Service {
	target := server.lastAddress(in.APIServer)
	if target == "" || in.Services == nil {
		return nil
	}
	service, err := in.Services.Services(metav1.NamespaceDefault).Get("kubernetes")
	if err != nil {
		return nil // without the Service, pods do not get its address either
	}
	var all []podnet.Service
	for _, address := range service.Spec.ClusterIPs {
		for _, port := range service.Spec.Ports {
			if ip, err := netip.ParseAddr(address); err == nil && ip.Is4() && port.Protocol == corev1.ProtocolTCP {
				all = append(all, podnet.Service{Protocol: "tcp", Address: address, Port: uint16(port.Port), Target: target}) //nolint:gosec // the API server accepts only valid ports
			}
		}
	}
	return all
}

// lastNumeric keeps the last resolved address of a server while its name cannot be resolved, so pods do not lose
// the server.
type lastNumeric struct {
	resolve func(hostPort string) string
	last    atomic.Pointer[string]
}

func (l *lastNumeric) lastAddress(hostPort string) string {
	if now := l.resolve(hostPort); now != "" {
		l.last.Store(&now)
	}
	if last := l.last.Load(); last != nil {
		return *last
	}
	return ""
}

// resolveIPv4 resolves the host of an address to IPv4, because the network process cannot resolve names. It
// returns "" if that fails.
func resolveIPv4(hostPort string) string {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return ""
	}
	addresses, err := net.LookupHost(host) //nolint:noctx // the resolver has a timeout of its own
	slices.Sort(addresses)                 // a new order of the addresses must not count as a change
	for _, address := range addresses {
		if ip, parsed := netip.ParseAddr(address); err == nil && parsed == nil && ip.Is4() {
			return net.JoinHostPort(address, port)
		}
	}
	return ""
}

// machineNameservers returns the IPv4 DNS servers of the machine. Pods reach them through their gateway.
func machineNameservers() []string {
	servers := []string{}
	file, err := os.Open("/etc/resolv.conf")
	if err != nil {
		return servers
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == "nameserver" {
			if ip, err := netip.ParseAddr(words[1]); err == nil && ip.Is4() {
				servers = append(servers, net.JoinHostPort(ip.String(), "53"))
			}
		}
	}
	return servers
}
