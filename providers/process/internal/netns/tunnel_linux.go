// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// tunnelDevice is the device that creates TUN interfaces.
const tunnelDevice = "/dev/net/tun"

// tunnelName is the name of the interface in the namespace.
const tunnelName = "eth0"

// OpenTunnel creates a TUN interface in the namespace at path, with the address and a default route. The returned
// file reads and writes the interface's IPv4 packets. The interface persists after the file is closed, and the
// next call opens it again. While another process has it open, the error is unix.EBUSY.
func OpenTunnel(path, address string, mtu int) (*os.File, error) {
	var file *os.File
	err := Do(path, func() (err error) {
		if file, err = openTunnel(); err != nil {
			return err
		}
		if err := configureTunnel(address, mtu); err != nil {
			return errors.Join(err, file.Close())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make the interface of the pod in the network namespace %s: %w", path, err)
	}
	return file, nil
}

// openTunnel opens the interface in the namespace of this thread.
func openTunnel() (*os.File, error) {
	fd, err := unix.Open(tunnelDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: tunnelDevice, Err: err}
	}
	request, err := unix.NewIfreq(tunnelName)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err == nil {
			err = unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make an interface of %s: %w", tunnelDevice, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), tunnelDevice), nil
}

// configureTunnel adds the address to the interface and the route to the namespace, if they do not exist.
func configureTunnel(address string, mtu int) error {
	ip := net.ParseIP(address)
	link, err := netlink.LinkByName(tunnelName)
	if err != nil {
		return err
	}
	index := link.Attrs().Index
	if err := netlink.LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("set its MTU: %w", err)
	}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)}}); err != nil {
		return fmt.Errorf("set its address: %w", err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("start it: %w", err)
	}
	all := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := netlink.RouteReplace(&netlink.Route{LinkIndex: index, Dst: all, Scope: netlink.SCOPE_LINK}); err != nil {
		return fmt.Errorf("set its route: %w", err)
	}
	return nil
}

// HasTunnels returns nil if TUN interfaces can be created, or else the reason.
func HasTunnels() error {
	f, err := os.OpenFile(tunnelDevice, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
