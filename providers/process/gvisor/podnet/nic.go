// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// packetSize is the size of the read buffers for packets.
	packetSize = buffer.MaxChunkSize
	// maxQueue is the maximum number of queued bytes for a pod that does not read. Further packets are dropped.
	maxQueue = 2 << 20
	// queueCost is the minimum cost of a packet in the queue: even an empty packet needs memory.
	queueCost = 1 << 10
	// socketBuffer is the requested size of a kernel buffer. The kernel may reduce it.
	socketBuffer = 1 << 20
)

// nic is this process's end of a pod's network interface: a socket, or a TUN device. Senders never block. Packets
// that the kernel does not accept are queued. Each sender has its share of the queue, so a sender that sends too
// much does not cause drops for other senders.
type nic struct {
	file *os.File // closes fd
	raw  syscall.RawConn
	tun  bool
	wake chan struct{} // has a token for the writer if packets are queued

	mu sync.Mutex
	// The following are guarded by mu.
	fd      int // -1 when closed
	queue   []queued
	bytes   int
	senders map[*pod]int // bytes by sender; nil is the stack
}

type queued struct {
	from *pod
	pkt  *stack.PacketBuffer
	cost int
}

// openNIC takes ownership of a descriptor, even if it fails.
func openNIC(fd int) (*nic, error) {
	tun, err := isTUN(fd)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("the network card: %w", err)
	}
	if !tun {
		if size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil && size < socketBuffer {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer) // a smaller buffer is only slower
		}
	}
	n := &nic{file: os.NewFile(uintptr(fd), "nic"), tun: tun, wake: make(chan struct{}, 1), fd: fd, senders: map[*pod]int{}}
	if n.raw, err = n.file.SyscallConn(); err != nil {
		_ = n.file.Close()
		return nil, fmt.Errorf("the network card: %w", err)
	}
	return n, nil
}

// isTUN reports whether the descriptor is a TUN device. It returns an error if it is neither a TUN device nor a
// packet socket.
func isTUN(fd int) (bool, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return false, err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		request, err := unix.NewIfreq("")
		if err == nil {
			err = unix.IoctlIfreq(fd, unix.TUNGETIFF, request)
		}
		if flags := request.Uint16(); err == nil && flags&(unix.IFF_TUN|unix.IFF_NO_PI|unix.IFF_VNET_HDR) == unix.IFF_TUN|unix.IFF_NO_PI {
			return true, nil
		}
	case unix.S_IFSOCK:
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			return false, err
		}
		kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		if err != nil {
			return false, err
		}
		if domain == unix.AF_UNIX && kind == unix.SOCK_SEQPACKET {
			return false, nil
		}
	}
	return false, errors.New("the descriptor is neither a unix socket of type SOCK_SEQPACKET nor a TUN device (IFF_TUN|IFF_NO_PI)")
}

// close closes the descriptor, which ends receivePackets and sendQueued.
func (n *nic) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fd = -1
	_ = n.file.Close()
	for _, q := range n.queue {
		q.pkt.DecRef()
	}
	n.queue, n.bytes = nil, 0
	clear(n.senders)
}

// receivePackets calls handle for each packet until either end is closed. If handle returns true, it keeps the
// view.
func (n *nic) receivePackets(handle func(view *buffer.View) (taken bool)) {
	var view *buffer.View
	var ended bool
	read := func(fd uintptr) bool {
		if view == nil {
			view = buffer.NewViewSize(packetSize)
		}
		size, err := unix.Read(int(fd), view.AsSlice())
		switch {
		case err == unix.EAGAIN:
			view.Release() // an idle pod holds no buffer
			view = nil
			return false
		case err == unix.EINTR:
			return true
		case err != nil, size == 0:
			ended = true
			return true
		}
		view.CapLength(size)
		if handle(view) {
			view = nil
		} else {
			view.Reset()
			view.Grow(packetSize)
		}
		return true
	}
	for !ended {
		if err := n.raw.Read(read); err != nil {
			break
		}
	}
	if view != nil {
		view.Release()
	}
}

// sendPacket sends a packet of the stack. The caller keeps the packet.
func (n *nic) sendPacket(pkt *stack.PacketBuffer) {
	if n.tun && pkt.TransportProtocolNumber == header.TCPProtocolNumber {
		setChecksum(pkt.NetworkHeader().Slice(), pkt.TransportHeader().Slice(), pkt.Data().Checksum())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) == 0 && n.writePacket(pkt.AsSlices()) {
		return
	}
	n.enqueuePacket(nil, pkt)
}

// passPacket sends a packet of another pod, and reports whether it has kept the view.
func (n *nic) passPacket(from *pod, view *buffer.View) (taken bool) {
	if n.tun {
		completeTCP(view.AsSlice())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) == 0 && n.writeBytes(view.AsSlice()) {
		return false
	}
	if n.fd < 0 || !n.hasRoom(from, view.Size()) {
		return false
	}
	size, room := view.Size(), view
	if taken = size > packetSize/4; !taken {
		room = buffer.NewViewWithData(view.AsSlice())
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(room)})
	n.enqueuePacket(from, pkt)
	pkt.DecRef()
	return taken
}

func (n *nic) hasRoom(from *pod, size int) bool {
	cost := max(size, queueCost)
	return n.senders[from]+cost <= maxQueue-n.bytes-cost
}

// enqueuePacket queues a packet if its sender has room. The caller holds mu.
func (n *nic) enqueuePacket(from *pod, pkt *stack.PacketBuffer) {
	if n.fd < 0 || !n.hasRoom(from, pkt.Size()) {
		return
	}
	cost := max(pkt.Size(), queueCost)
	n.queue = append(n.queue, queued{from, pkt.IncRef(), cost})
	n.bytes += cost
	n.senders[from] += cost
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// sendQueued sends the queued packets until done or the descriptor is closed.
func (n *nic) sendQueued(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-n.wake:
		}
		if err := n.raw.Write(func(uintptr) bool { return n.flushQueue() }); err != nil {
			return
		}
	}
}

// flushQueue sends as much as the kernel accepts, and reports whether the queue is empty.
func (n *nic) flushQueue() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, q := range n.queue {
		if !n.writePacket(q.pkt.AsSlices()) {
			n.queue = n.queue[i:]
			return false
		}
		n.bytes -= q.cost
		if n.senders[q.from] -= q.cost; n.senders[q.from] == 0 {
			delete(n.senders, q.from)
		}
		q.pkt.DecRef()
		n.queue[i] = queued{}
	}
	n.queue = nil
	return true
}

// writePacket writes a packet. It returns false only if the kernel buffer is full: after another error, the
// packet is dropped. The caller holds mu.
func (n *nic) writePacket(parts [][]byte) bool {
	if n.fd < 0 {
		return true
	}
	var err error
	for err = unix.EINTR; err == unix.EINTR; {
		if n.tun {
			_, err = unix.Writev(n.fd, parts)
		} else {
			_, err = unix.SendmsgBuffers(n.fd, parts, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		}
	}
	return err != unix.EAGAIN
}

func (n *nic) writeBytes(packet []byte) bool {
	if n.fd < 0 {
		return true
	}
	var err error
	for err = unix.EINTR; err == unix.EINTR; {
		if n.tun {
			_, err = unix.Write(n.fd, packet)
		} else {
			err = unix.Sendto(n.fd, packet, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
		}
	}
	return err != unix.EAGAIN
}
