// SPDX-License-Identifier: Apache-2.0

package podnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is the timeout for an answer of the network process.
const patience = 15 * time.Second

// maxMessage is the maximum size of a packet: a configuration with its services.
const maxMessage = 64 << 10

// Connection is a connection to the network process. Only one goroutine may use it.
type Connection struct{ socket *net.UnixConn }

// CheckVersion asks the network process at path for its version, and returns ErrVersion if it differs.
func CheckVersion(ctx context.Context, path string) error {
	c, err := connectSocket(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	got, _, err := c.sendRequest(ctx, request{Op: opVersion}, nil)
	if err == nil && got.Version != Version {
		err = fmt.Errorf("%w: it speaks version %d of the protocol, and version %d is needed", ErrVersion, got.Version, Version)
	}
	return err
}

func connectSocket(ctx context.Context, path string) (*Connection, error) {
	var d net.Dialer
	socket, err := d.DialContext(ctx, "unixpacket", path)
	if err != nil {
		return nil, fmt.Errorf("connect with the network process: %w", err)
	}
	return &Connection{socket.(*net.UnixConn)}, nil
}

// Close ends the connection.
func (c *Connection) Close() error { return c.socket.Close() }

// Wait returns when the network process has ended, or has ended the connection.
func (c *Connection) Wait() {
	_ = c.socket.SetReadDeadline(time.Time{})
	_, _ = c.socket.Read(make([]byte, 1)) // the server sends no data without a request
}

// Configure replaces the configuration of the network process. The end of the connection means that the network
// process has ended.
func Configure(ctx context.Context, path string, config Config) (*Connection, error) {
	c, err := connectSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.sendRequest(ctx, request{Op: opConfigure, Config: &config}, nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Attach connects the pod at the other end of link to the network until the connection ends. The caller keeps
// link.
func Attach(ctx context.Context, path string, pod Pod, link *os.File) (*Connection, error) {
	c, err := connectSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.sendRequest(ctx, request{Op: opAttach, Pod: &pod}, link); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Keep connects the pod at the other end of link to the network until Detach, or until the network process ends.
func Keep(ctx context.Context, path string, pod Pod, link *os.File) error {
	c, err := connectSocket(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	_, _, err = c.sendRequest(ctx, request{Op: opAttach, Pod: &pod, Keep: true}, link)
	return err
}

// Detach removes the network of a pod. A pod without a network is no error.
func Detach(ctx context.Context, path, address string) error {
	c, err := connectSocket(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	_, _, err = c.sendRequest(ctx, request{Op: opDetach, Address: address}, nil)
	return err
}

// Dial connects to a port of a pod, from the address of the gateway. For a port without a listener, the error is
// syscall.ECONNREFUSED.
func Dial(ctx context.Context, path, address string, port uint16) (net.Conn, error) {
	c, err := connectSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_, file, err := c.sendRequest(ctx, request{Op: opDial, Address: address, Port: port}, nil)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: int(port)}, Err: err}
	}
	if file == nil {
		return nil, errors.New("connect with a pod: the network process sent no connection")
	}
	defer file.Close()
	return net.FileConn(file)
}

// refused is the error for a port without a listener.
type refused struct{ error }

// Unwrap returns syscall.ECONNREFUSED.
func (refused) Unwrap() error { return syscall.ECONNREFUSED }

// sendRequest sends a request, with a descriptor if there is one, and returns the answer, with its descriptor if it has one.
func (c *Connection) sendRequest(ctx context.Context, r request, send *os.File) (answer, *os.File, error) {
	var got answer
	data, err := json.Marshal(r)
	if err != nil {
		return got, nil, err
	}
	if len(data) > maxMessage {
		return got, nil, fmt.Errorf("a message to the network process of %d bytes: want at most %d", len(data), maxMessage)
	}
	deadline := time.Now().Add(patience)
	if own, ok := ctx.Deadline(); ok && own.Before(deadline) {
		deadline = own
	}
	if err := c.socket.SetDeadline(deadline); err != nil {
		return got, nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.socket.SetDeadline(time.Unix(1, 0)) })()
	fail := func(err error) (answer, *os.File, error) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return got, nil, fmt.Errorf("ask the network process to %s: %w", r.Op, err)
	}
	if err := c.sendPacket(data, send); err != nil {
		return fail(err)
	}
	packet, space := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	n, spaceN, _, _, err := c.socket.ReadMsgUnix(packet, space)
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF // the server has closed the connection
	}
	if err != nil {
		return fail(err)
	}
	file, err := packetDescriptor(space[:spaceN])
	if err == nil {
		err = json.Unmarshal(packet[:n], &got)
	}
	if err == nil && got.Error != "" {
		err = errors.New(got.Error)
		if got.Refused {
			err = refused{err}
		}
	}
	if err != nil {
		if file != nil {
			file.Close()
		}
		return fail(err)
	}
	return got, file, nil
}

// sendPacket writes a packet, with a descriptor if file is not nil. The caller keeps file.
func (c *Connection) sendPacket(data []byte, file *os.File) error {
	if file == nil {
		_, err := c.socket.Write(data)
		return err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		_, _, sent = c.socket.WriteMsgUnix(data, unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, sent)
}

// packetDescriptor returns the descriptor of a packet, or nil if there is none.
func packetDescriptor(space []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(space)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, err
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "connection"), nil
}
