// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// machine asks the kernel for the route of a packet. The answer covers every address of every interface, their
// broadcast addresses, and ranges that are routed to the machine itself. Nothing is cached, so no answer is
// stale.
type machine struct {
	mu sync.Mutex
	// fd, a socket of rtnetlink, and sequence are guarded by mu.
	fd       int
	sequence uint32
}

func openMachine() (*machine, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a socket for the routes of the machine: %w", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &machine{fd: fd}, nil
}

func (m *machine) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = unix.Close(m.fd)
	m.fd = -1
}

// routeRequest is an rtnetlink request for the route to an address.
type routeRequest struct {
	header unix.NlMsghdr
	route  unix.RtMsg
	attr   unix.RtAttr
	to     [4]byte
}

// ownsAddress reports whether a packet to the address would stay on the machine. It returns an error if there is
// no route.
func (m *machine) ownsAddress(a netip.Addr) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sequence++
	r := routeRequest{
		header: unix.NlMsghdr{Len: uint32(unsafe.Sizeof(routeRequest{})), Type: unix.RTM_GETROUTE, Flags: unix.NLM_F_REQUEST, Seq: m.sequence},
		route:  unix.RtMsg{Family: unix.AF_INET, Dst_len: 32},
		attr:   unix.RtAttr{Len: unix.SizeofRtAttr + 4, Type: unix.RTA_DST},
		to:     a.As4(),
	}
	message := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	if err := unix.Sendto(m.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, err
	}
	var answer [4096]byte
	for {
		n, _, err := unix.Recvfrom(m.fd, answer[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, err
		}
		kind, ours, err := readRoute(answer[:n], m.sequence)
		if ours {
			return kind != unix.RTN_UNICAST, err
		}
	}
}

// readRoute reads the type of a route from a netlink answer. ours is false if the answer is for another sequence
// number.
func readRoute(b []byte, sequence uint32) (kind uint8, ours bool, err error) {
	if len(b) < unix.SizeofNlMsghdr || binary.NativeEndian.Uint32(b[8:]) != sequence {
		return 0, false, nil // an answer to a request that timed out
	}
	body := b[unix.SizeofNlMsghdr:]
	switch of := binary.NativeEndian.Uint16(b[4:]); {
	case of == unix.NLMSG_ERROR && len(body) >= 4:
		return 0, true, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
	case of == unix.RTM_NEWROUTE && len(body) >= unix.SizeofRtMsg:
		return body[7], true, nil // rtm_type
	}
	return 0, true, errors.New("the kernel gave an answer that is not a route")
}
