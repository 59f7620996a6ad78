// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// flowIdle and dnsIdle end a flow in which nothing was sent for as long.
	flowIdle = 60 * time.Second
	dnsIdle  = 10 * time.Second
	// flowBuffer is for the datagrams of a flow that wait.
	flowBuffer = 64 << 10
)

// flow is the datagrams between one port of a pod and one port elsewhere.
type flow struct {
	slot *slot
	ep   tcpip.Endpoint
	wq   *waiter.Queue
	idle time.Duration
	// out takes a datagram of the pod, which it may not keep; closeOut ends what is on the other side.
	out      func(datagram []byte)
	closeOut func()
	used     atomic.Int64 // when the last datagram came, in nanoseconds of Unix time
}

// run carries datagrams of the pod until the flow is idle, closed, or the pod ends; then it releases everything.
func (f *flow) run() {
	f.ep.SocketOptions().SetReceiveBufferSize(int64(f.slot.share), true)
	f.touch()
	stop := context.AfterFunc(f.slot.pod.ctx, f.close)
	f.carry()
	stop()
	f.close()
	f.closeOut()
	f.slot.release()
}

func (f *flow) carry() {
	timer := time.NewTimer(f.idle)
	defer timer.Stop()
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventHUp | waiter.EventErr)
	f.wq.EventRegister(&entry)
	defer f.wq.EventUnregister(&entry)
	w := new(tcpip.SliceWriter)
	for {
		b := largeBuffers.Get().(*[]byte)
		*w = *b
		result, terr := f.ep.Read(w, tcpip.ReadOptions{})
		if terr == nil {
			f.touch()
			f.out((*b)[:result.Count])
		}
		largeBuffers.Put(b)
		if _, empty := terr.(*tcpip.ErrWouldBlock); empty {
			select {
			case <-ready:
			case <-timer.C:
				left := f.idle - time.Since(time.Unix(0, f.used.Load()))
				if left <= 0 {
					return
				}
				timer.Reset(left)
			}
		} else if terr != nil {
			return
		}
	}
}

// deliver sends a datagram to the pod. One that does not fit is lost.
func (f *flow) deliver(datagram []byte) {
	f.touch()
	_, _ = f.ep.Write(bytes.NewReader(datagram), tcpip.WriteOptions{})
}

func (f *flow) touch() { f.used.Store(time.Now().UnixNano()) }

// close ends run.
func (f *flow) close() { f.ep.Close() }
