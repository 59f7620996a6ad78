// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// PortForward connects stream to a port of the pod through the plugin.
func (p *plugin) PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error {
	if err := p.requireAbility(rpc.Ability_ABILITY_PORT_FORWARD, "port-forward"); err != nil {
		return err
	}
	s, err := p.connectedSession()
	if err != nil {
		return err
	}
	start := &rpc.ForwardStart{Namespace: namespace, Pod: pod, Port: port, Caller: callerOf(ctx)}
	ctx, cancel := s.boundContext(ctx)
	defer cancel()
	remote, err := s.PortForward(ctx)
	if err == nil {
		err = remote.Send(&rpc.ForwardInput{Input: &rpc.ForwardInput_Start{Start: start}})
	}
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF, Recv returns the reason
		_, err = p.decodeError(ctx, s, err, nil)
		return err
	}
	go func() { // ends with stream, which the caller closes
		_ = wire.CopyChunks(stream, func(data []byte) error {
			return remote.Send(&rpc.ForwardInput{Input: &rpc.ForwardInput_Data{Data: data}})
		})
		_ = remote.CloseSend()
	}()
	for {
		chunk, err := remote.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			_, err = p.decodeError(ctx, s, err, remote.Trailer())
			return err
		}
		if _, err := stream.Write(chunk.GetData()); err != nil {
			return fmt.Errorf("write to the client: %w", err)
		}
	}
}
