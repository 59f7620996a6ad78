// SPDX-License-Identifier: Apache-2.0

package api

import "io"

// pieceSize bounds the bytes that one write to a client, or one copy from a client, moves. The bytes stay in memory until the other side
// reads them. io.Copy uses the methods below instead of its own buffer of 32 KiB.
const pieceSize = 8 << 10

func copyPieces(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, pieceSize))
}

// pieceWriter writes to a client.
type pieceWriter struct{ io.WriteCloser }

func (w pieceWriter) Write(p []byte) (n int, err error) {
	for err == nil && (n < len(p) || len(p) == 0) {
		var more int
		more, err = w.WriteCloser.Write(p[n:min(len(p), n+pieceSize)])
		if n += more; len(p) == 0 {
			break
		}
	}
	return n, err
}

func (w pieceWriter) ReadFrom(r io.Reader) (int64, error) { return copyPieces(w, r) }

// pieceReader reads the bytes that a client sends.
type pieceReader struct{ io.Reader }

func (r pieceReader) WriteTo(w io.Writer) (int64, error) { return copyPieces(w, r) }

// forwardedStream is a forwarded connection of a client.
type forwardedStream struct {
	pieceReader
	pieceWriter
}

func newForwardedStream(s io.ReadWriteCloser) forwardedStream {
	return forwardedStream{pieceReader{s}, pieceWriter{s}}
}

// Reset ends the stream for both sides, if the stream supports it.
func (s forwardedStream) Reset() error {
	if stream, ok := s.WriteCloser.(interface{ Reset() error }); ok {
		return stream.Reset()
	}
	return nil
}
