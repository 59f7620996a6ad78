// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// guestCommand is the first argument of this program in a sandbox.
const guestCommand = "podnet-guest"

// beGuest runs this program in a sandbox: as a server, or for one exchange whose answer it prints.
func beGuest(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch {
	case args[0] == "serve":
		_ = serveAll(context.Background(), "0.0.0.0") // on the machine's network another process has the ports
		return awaitEnd()
	case args[0] == "wait":
		return awaitEnd()
	case args[0] == "dial" && len(args) >= 3: // NETWORK ADDRESS [DATA]
		return guestDial(ctx, args[1], args[2], args[3:])
	case args[0] == "ping" && len(args) == 2:
		return guestPing(args[1])
	case args[0] == "lookup" && len(args) == 3: // NETWORK NAME
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, args[1], netip.AddrPortFrom(testGateway, dnsPort).String())
		}}
		found, err := resolver.LookupHost(ctx, args[2])
		fmt.Print(found)
		return err
	}
	return fmt.Errorf("unknown: %q", args)
}

// awaitEnd waits for a signal to end. A pause would end with any signal of Go's runtime.
func awaitEnd() error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM)
	<-end
	return nil
}

func guestDial(ctx context.Context, network, address string, data []string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for _, text := range data {
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
	}
	b := make([]byte, 1<<16)
	n, err := c.Read(b)
	_, _ = os.Stdout.Write(b[:n])
	return err
}

func guestPing(address string) error {
	c, err := net.Dial("ip4:icmp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	request := header.ICMPv4(make([]byte, header.ICMPv4MinimumSize+8))
	request.SetType(header.ICMPv4Echo)
	request.SetIdent(uint16(os.Getpid()))
	request.SetChecksum(^checksum.Checksum(request, 0))
	if _, err := c.Write(request); err != nil {
		return err
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	b := make([]byte, 1500)
	n, _, err := c.(*net.IPConn).ReadFrom(b) // Read leaves the header of IP
	if err != nil {
		return err
	}
	if reply := header.ICMPv4(b[:n]); n < header.ICMPv4MinimumSize || reply.Type() != header.ICMPv4EchoReply || reply.Ident() != request.Ident() {
		return errors.New("there came something else than a reply")
	}
	fmt.Print("pong")
	return nil
}
