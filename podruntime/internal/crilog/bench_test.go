// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func benchmarkLines(b *testing.B, line string, opts api.ContainerLogOpts) {
	lines := 10_000 * len(bigLine) / len(line)
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "0.log"), []byte(strings.Repeat(line, lines)), 0o600); err != nil {
		b.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	b.ReportAllocs()
	b.SetBytes(int64(lines * len(line)))
	for b.Loop() {
		stream, err := d.Read(b.Context(), "0.log", opts, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, stream); err != nil {
			b.Fatal(err)
		}
		_ = stream.Close()
	}
}

// BenchmarkLines reads ten thousand lines, or one endless line of the same length.
func BenchmarkLines(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkLines(b, bigLine, api.ContainerLogOpts{}) })
	b.Run("stamps", func(b *testing.B) { benchmarkLines(b, bigLine, api.ContainerLogOpts{Timestamps: true}) })
	b.Run("tail 10", func(b *testing.B) { benchmarkLines(b, bigLine, api.ContainerLogOpts{Tail: 10}) })
	b.Run("flood, tail 1", func(b *testing.B) {
		benchmarkLines(b, at(0, "stdout P "+strings.Repeat("y", 16<<10)), api.ContainerLogOpts{Tail: 1})
	})
}
