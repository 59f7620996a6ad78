// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// listen opens the listener for the API server: a socket of this user, or a port of this machine. Every user of
// the machine can reach a port. Therefore listen refuses a port unless requests need a token, or open permits
// every user to run programs here.
func listen(ctx context.Context, where string, token, open bool) (net.Listener, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: want unix:///path or http://127.0.0.1:port", where)
	}
	var c net.ListenConfig
	switch {
	case u.Scheme == "http" && net.ParseIP(u.Hostname()) != nil && net.ParseIP(u.Hostname()).IsLoopback():
		if !token && !open {
			return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: every user of this machine could run programs with the rights of this one: "+
				"want unix:///path, or a token by --token-file, or --open-to-this-machine", where)
		}
		return c.Listen(ctx, "tcp", u.Host)
	case u.Scheme == "http":
		return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: whoever reaches it runs programs here: want unix:///path or http://127.0.0.1:port", where)
	case u.Scheme != "unix" || u.Path == "":
		return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: want unix:///path or http://127.0.0.1:port", where)
	}
	if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", u.Path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("interlink-plugin: another process listens on %s", u.Path)
	}
	if there, err := os.Lstat(u.Path); err == nil && there.Mode().Type() != os.ModeSocket {
		return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: the path exists and is not a socket; remove it or choose another path", where)
	}
	if err := os.Remove(u.Path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("interlink-plugin: %w", err)
	}
	// Other users must not connect between listen and chmod: the socket is made under another name, in a private
	// directory.
	dir, err := os.MkdirTemp(filepath.Dir(u.Path), ".interlink-")
	if err != nil {
		return nil, fmt.Errorf("interlink-plugin: %w", err)
	}
	defer os.RemoveAll(dir)
	l, err := c.Listen(ctx, "unix", filepath.Join(dir, "s"))
	if err != nil {
		return nil, fmt.Errorf("interlink-plugin: %w", err)
	}
	if unix, ok := l.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}
	if err = os.Chmod(filepath.Join(dir, "s"), 0o600); err == nil {
		err = os.Rename(filepath.Join(dir, "s"), u.Path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("interlink-plugin: %w", err), l.Close())
	}
	return l, nil
}
