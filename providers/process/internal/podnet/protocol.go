// SPDX-License-Identifier: Apache-2.0

package podnet

import "errors"

// Version is the version of the protocol. A network process of another version is replaced.
const Version = 1

// ErrVersion is the error of a network process of another version.
var ErrVersion = errors.New("the network process is of another version")

// MTU is the MTU of a pod's link. It is large, because the cost of a packet hardly depends on its size.
const MTU = 65520

// The operations of a request.
const (
	opVersion   = "version"
	opConfigure = "configure"
	opAttach    = "attach"
	opDetach    = "detach"
	opDial      = "dial"
)

// request is the first packet on a connection.
type request struct {
	Op      string  `json:"op"`
	Config  *Config `json:"config,omitempty"`
	Pod     *Pod    `json:"pod,omitempty"`
	Keep    bool    `json:"keep,omitempty"`
	Address string  `json:"address,omitempty"`
	Port    uint16  `json:"port,omitempty"`
}

// answer is the packet that answers a request.
type answer struct {
	Version int    `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
	// Refused means that the pod has no listener at the port.
	Refused bool `json:"refused,omitempty"`
}

// Config is the configuration of the network process.
type Config struct {
	// Range has the addresses of pods, as a prefix such as 10.88.0.0/22.
	Range string `json:"range"`
	// Gateway is the address in Range that answers DNS queries, and the default gateway of pods.
	Gateway string `json:"gateway"`
	// MTU is the MTU of the links.
	MTU int `json:"mtu"`
	// Nameservers are the DNS servers behind the gateway, as host:port.
	Nameservers []string `json:"nameservers"`
	// Denied are prefixes that pods must not reach, in addition to the built-in ones.
	Denied []string `json:"denied"`
	// Services are addresses that are redirected to other addresses.
	Services []Service `json:"services"`
}

// Service redirects an address for pods to a target. The target may be an address that pods cannot reach
// otherwise.
type Service struct {
	// Protocol is tcp or udp.
	Protocol string `json:"protocol"`
	Address  string `json:"address"`
	Port     uint16 `json:"port"`
	// Target is an address and a port of the machine's network.
	Target string `json:"target"`
}

// Pod is a pod of the network.
type Pod struct {
	// Name is for messages: namespace/name.
	Name      string     `json:"name"`
	Address   string     `json:"address"`
	HostPorts []HostPort `json:"hostPorts"`
}

// HostPort is a host port that is forwarded to a port of a pod.
type HostPort struct {
	// Protocol is tcp or udp.
	Protocol string `json:"protocol"`
	// HostIP is the address of the machine; "" for all.
	HostIP   string `json:"hostIP"`
	HostPort uint16 `json:"hostPort"`
	Port     uint16 `json:"port"`
}

// Link is the configuration of a sandbox's end of the link.
type Link struct {
	Address string `json:"address"`
	Gateway string `json:"gateway"`
	MTU     int    `json:"mtu"`
}
