// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/podnet"
)

// linkBuffer is the send buffer size of each end of a link: some packets of the maximum size.
const linkBuffer = 4 << 20

// joinNetwork connects the sandbox to the network by a pair of sockets. One end is the interface of the sandbox;
// the other end stays open here, and is sent to the network process.
func (s *supervisor) joinNetwork() error {
	n := s.spec.Network
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make the link of the pod: %w", err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "network"), os.NewFile(uintptr(pair[1]), "interface")
	defer far.Close()
	for _, fd := range pair {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, linkBuffer) // the kernel reduces the size to its limit
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	attached, err := podnet.Attach(ctx, n.Socket, n.Pod, near)
	if err == nil {
		err = s.addInterface(far)
	}
	if err != nil {
		if attached != nil {
			attached.Close()
		}
		near.Close()
		return err
	}
	go s.keepAttached(attached, near) // until this process ends
	return nil
}

// keepAttached attaches the link again after each restart of the network process. If that fails for a second or
// two, it writes the reason to a file until it succeeds: see NetworkError.
func (s *supervisor) keepAttached(attached *podnet.Connection, link *os.File) {
	const often, seldom = 20 * time.Millisecond, time.Second
	for {
		attached.Wait()
		attached.Close()
		var err error
		said := ""
		for pause := often; ; pause = min(2*pause, seldom) {
			if attached, err = podnet.Attach(context.Background(), s.spec.Network.Socket, s.spec.Network.Pod, link); err == nil {
				break
			}
			if text := err.Error(); text != said && pause == seldom {
				said = text
				fmt.Fprintln(os.Stderr, "attach the pod to its network again:", errors.Join(err, durable.WriteFile(networkErrorFile, []byte(text))))
			}
			time.Sleep(pause)
		}
		_ = os.Remove(networkErrorFile) // usually there is no such file
	}
}

// addInterface adds this end of the link to the sandbox as its interface.
func (s *supervisor) addInterface(link *os.File) error {
	o := s.spec.OCI
	data, err := json.Marshal(s.spec.Network.Link)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.Bundle, "c")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	input, said := filepath.Join(dir, "link.json"), filepath.Join(dir, "said")
	if err := os.WriteFile(input, data, 0o600); err != nil {
		return err
	}
	var files []uintptr
	for _, file := range []struct {
		path string
		flag int
	}{{input, os.O_RDONLY}, {os.DevNull, os.O_WRONLY}, {said, os.O_CREATE | os.O_WRONLY}} {
		f, err := os.OpenFile(file.path, file.flag, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		files = append(files, f.Fd())
	}
	call := oci.Call{Dir: dir, Argv: []string{o.Program, "podnet", "join", filepath.Join(o.Root, "runsc-"+o.ID+".sock")}}
	if err := s.runCall(call, append(files, link.Fd())); err != nil {
		return fmt.Errorf("add the interface of the pod: %w", errors.Join(err, errors.New(Tail(said))))
	}
	return nil
}
