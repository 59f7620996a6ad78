// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

func (o Options) openListener(ctx context.Context) (net.Listener, error) {
	if o.Socket != "" {
		return listenSocket(ctx, o.Socket)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("serve plugin: %w", err)
	}
	return l, nil
}

// listenSocket creates the socket in a private directory and moves it to its path, so that other users can never
// connect.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := freeSocket(ctx, path); err != nil {
		return nil, fmt.Errorf("serve plugin: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".vk-*")
	if err != nil {
		return nil, fmt.Errorf("serve plugin on %s: %w", path, err)
	}
	defer os.RemoveAll(dir)
	hidden := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", hidden)
	if err != nil {
		return nil, fmt.Errorf("serve plugin on %s: %w", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	err = os.Chmod(hidden, 0o600)
	var made fs.FileInfo
	if err == nil {
		made, err = os.Lstat(hidden)
	}
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve plugin on %s: %w", path, err), l.Close())
	}
	return &socketListener{Listener: l, path: path, made: made}, nil
}

// freeSocket returns an error if path is not a socket, or if a process listens on it. The caller may replace an
// unused socket.
func freeSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is there and is no socket: remove it, or choose another path", path)
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("another plugin listens on %s: stop it, or choose another path", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("another process may listen on %s: %w", path, err)
	}
	return nil
}

// socketListener accepts only connections of the same user and of root.
type socketListener struct {
	net.Listener
	path string
	made fs.FileInfo
	once sync.Once
}

func (l *socketListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if wire.CheckPeer(conn.(*net.UnixConn)) == nil {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// Addr returns the current path of the socket.
func (l *socketListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close also removes the socket, unless another one has replaced it.
func (l *socketListener) Close() error {
	l.once.Do(func() {
		if info, err := os.Lstat(l.path); err == nil && os.SameFile(info, l.made) {
			_ = os.Remove(l.path)
		}
	})
	return l.Listener.Close()
}
