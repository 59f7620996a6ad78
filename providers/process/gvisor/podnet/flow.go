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
	// flowIdle and dnsIdle are the times without data after which a flow ends. answeredIdle is the time for a
	// flow without unanswered queries.
	flowIdle     = 60 * time.Second
	dnsIdle      = 10 * time.Second
	answeredIdle = time.Second
	// flowBuffer is the buffer for waiting datagrams of a flow.
	flowBuffer = 64 << 10
)

// flow carries the datagrams between one port of a pod and one port outside.
type flow struct {
	slot *slot
	ep   tcpip.Endpoint
	wq   *waiter.Queue
	idle time.Duration
	// out sends a datagram of the pod, and must not keep it. closeOut closes the other side.
	out      func(datagram []byte)
	closeOut func()
	used     atomic.Int64 // arrival of the last datagram, in nanoseconds of Unix time
	// questions is the number of unanswered DNS queries. Flows for other protocols have none.
	questions atomic.Int32
	asks      bool
}

// runFlow forwards datagrams of the pod until the flow is idle or closed, or the pod ends. Then it releases all
// resources.
func (f *flow) runFlow() {
	f.ep.SocketOptions().SetReceiveBufferSize(int64(f.slot.share), true)
	f.recordUse()
	stop := context.AfterFunc(f.slot.pod.ctx, f.close)
	f.carryDatagrams()
	stop()
	f.close()
	f.closeOut()
	f.slot.releaseSlot()
}

func (f *flow) carryDatagrams() {
	tick := f.idle
	if f.asks {
		tick = answeredIdle
	}
	timer := time.NewTimer(tick)
	defer timer.Stop()
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventHUp | waiter.EventErr)
	f.wq.EventRegister(&entry)
	defer f.wq.EventUnregister(&entry)
	w := new(tcpip.SliceWriter)
	for {
		b := datagramBuffers.Get().(*[]byte)
		*w = *b
		result, terr := f.ep.Read(w, tcpip.ReadOptions{})
		if terr == nil {
			f.recordUse()
			f.out((*b)[:result.Count])
		}
		datagramBuffers.Put(b)
		if _, empty := terr.(*tcpip.ErrWouldBlock); empty {
			select {
			case <-ready:
			case <-timer.C:
				if f.idleLimit() <= time.Since(time.Unix(0, f.used.Load())) {
					return
				}
				timer.Reset(tick)
			}
		} else if terr != nil {
			return
		}
	}
}

// idleLimit returns the current idle timeout of the flow. It is short if all queries are answered: a program that
// uses a new port for each query must not use up the pod's flows.
func (f *flow) idleLimit() time.Duration {
	if f.asks && f.questions.Load() == 0 {
		return answeredIdle
	}
	return f.idle
}

// deliverDatagram sends a datagram to the pod. A datagram that does not fit into the buffer is dropped.
func (f *flow) deliverDatagram(datagram []byte) {
	f.recordUse()
	_, _ = f.ep.Write(bytes.NewReader(datagram), tcpip.WriteOptions{})
}

func (f *flow) recordUse() { f.used.Store(time.Now().UnixNano()) }

// close ends runFlow.
func (f *flow) close() { f.ep.Close() }
