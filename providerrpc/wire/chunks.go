// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
)

// ChunkBytes is the maximum size of a chunk of a stream.
const ChunkBytes = 32 << 10

// CopyChunks sends the content of r in chunks until EOF. It does not reuse the buffers of chunks.
func CopyChunks(r io.Reader, send func([]byte) error) error {
	for {
		buffer := make([]byte, ChunkBytes) // a message belongs to gRPC once it is sent
		n, err := r.Read(buffer)
		if n > 0 {
			if err := send(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
