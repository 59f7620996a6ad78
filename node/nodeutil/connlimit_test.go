// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net"
	"strings"
	"testing"
)

// knocking is a listener whose connections have invented client addresses.
type knocking struct {
	net.Listener
	next chan string // addresses of clients
}

func (k *knocking) Accept() (net.Conn, error) {
	address, ok := <-k.next
	if !ok {
		return nil, net.ErrClosed
	}
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	return &addressed{Conn: ours, address: address}, nil
}

// addressed is a connection from the given address.
type addressed struct {
	net.Conn
	address string
}

func (a *addressed) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(a.address), Port: 1}
}

func TestSecurityE3OneClientDoesNotTakeAllConnections(t *testing.T) {
	lines := &lineLogger{}
	k := &knocking{next: make(chan string, 1000)}
	l := newConnLimit(lines.into(t.Context()), k, 100)
	for _, client := range []string{"10.0.0.1", "10.0.0.2"} {
		for range 200 {
			k.next <- client
		}
	}
	close(k.next)
	admitted := map[string][]net.Conn{}
	for {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		client := addressOf(conn)
		admitted[client] = append(admitted[client], conn)
	}
	if one, two := len(admitted["10.0.0.1"]), len(admitted["10.0.0.2"]); one != 75 || two != 25 {
		t.Errorf("the first client got %d connections and the second %d, want 75 and 25", one, two)
	}
	if n := strings.Count(lines.text(), "Closing new connections"); n != 1 {
		t.Errorf("%d lines are in the log, want 1: %s", n, lines.text())
	}

	for _, conns := range admitted {
		for _, conn := range conns {
			_ = conn.Close()
			_ = conn.Close() // a second Close is not counted
		}
	}
	if l.open != 0 || len(l.clients) != 0 {
		t.Errorf("after all were closed, %d count as open, of clients %v", l.open, l.clients)
	}
}

func TestConnectionLimitOfTheProcess(t *testing.T) {
	l := limitConns(t.Context(), nil)
	if files := maxOpenFiles(); files > 0 && l.max != files/2 {
		t.Errorf("limit: got %d, want half of %d", l.max, files)
	}
	if l := newConnLimit(t.Context(), nil, 0); l.max != defaultMaxConns {
		t.Errorf("limit where the system tells none: got %d", l.max)
	}
}
