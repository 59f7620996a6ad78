// SPDX-License-Identifier: Apache-2.0

package api

import "sync"

const (
	// sharedMemory bounds the unread client data of all connections together; each connection may hold leastAhead in addition.
	sharedMemory = 24 << 20
	// readSize bounds one read from a client.
	readSize = 8 << 10
	// readAheadLimit bounds the data read from a client ahead of the provider.
	readAheadLimit = 256 << 10
	// leastAhead is the memory that is reserved for a connection, so that it makes progress even if others use all the shared memory.
	leastAhead = 8 << 10
	// blockSize is the unit of allocation for this memory.
	blockSize = 4 << 10
)

// memoryPool is memory that connections share.
type memoryPool struct {
	mu   sync.Mutex
	free int // guarded by mu
}

// streamMemory is the pool of this process.
var streamMemory = &memoryPool{free: sharedMemory}

const (
	// forwardMemory is the memory for all port-forward sessions over SPDY together, and forwardSession the share of a session. The library
	// holds 700 KiB for each session, and about the same for unread data.
	forwardMemory  = 56 << 20
	forwardSession = 1 << 20
	// maxForwardedInAll bounds the connections forwarded at the same time, for all clients together.
	maxForwardedInAll = 512
)

var (
	forwardPool = &memoryPool{free: forwardMemory}
	// forwardedInAll has one byte for each connection.
	forwardedInAll = &memoryPool{free: maxForwardedInAll}
)

func (p *memoryPool) take(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.free {
		return false
	}
	p.free -= n
	return true
}

func (p *memoryPool) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += n
}

// backlog holds unread data of a client. Its owner serialises its methods.
type backlog struct {
	blocks [][]byte // the first block may be partly read, the last partly filled
	shared int      // bytes taken from the pool
	size   int      // unread bytes
}

// add copies as much of piece as there is room for. If it copies nothing, a read makes room.
func (b *backlog) add(piece []byte) (n int) {
	for n < len(piece) {
		if len(b.blocks) == 0 || len(b.last()) == cap(b.last()) {
			if !b.grow() {
				break
			}
		}
		last := b.last()
		more := min(cap(last)-len(last), len(piece)-n)
		b.blocks[len(b.blocks)-1] = append(last, piece[n:n+more]...)
		n += more
	}
	b.size += n
	return n
}

func (b *backlog) last() []byte { return b.blocks[len(b.blocks)-1] }

func (b *backlog) grow() bool {
	switch held := len(b.blocks) * blockSize; {
	case held < leastAhead:
	case held >= readAheadLimit || !streamMemory.take(blockSize):
		return false
	default:
		b.shared += blockSize
	}
	b.blocks = append(b.blocks, make([]byte, 0, blockSize))
	return true
}

// read moves bytes to p.
func (b *backlog) read(p []byte) (n int) {
	for n < len(p) && b.size > 0 {
		first := b.blocks[0]
		more := copy(p[n:], first)
		n, b.size = n+more, b.size-more
		if more < len(first) {
			b.blocks[0] = first[more:]
			break
		}
		b.blocks[0] = nil
		b.blocks = b.blocks[1:]
		if b.shared > 0 {
			b.shared -= blockSize
			streamMemory.give(blockSize)
		}
	}
	return n
}

// drop discards all data.
func (b *backlog) drop() {
	streamMemory.give(b.shared)
	*b = backlog{}
}
