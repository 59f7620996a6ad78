// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// BenchmarkEncoding measures the cost of a pod on the wire: encoded and decoded once. See decision 27.
func BenchmarkEncoding(b *testing.B) {
	p := newMock()
	if err := p.CreatePod(b.Context(), pod("web", "u1")); err != nil {
		b.Fatal(err)
	}
	full, err := p.GetPod(b.Context(), "default", "web")
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range []rpc.Encoding{rpc.Encoding_ENCODING_JSON, rpc.Encoding_ENCODING_PROTOBUF} {
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				data, err := wire.Marshal(e, full)
				if err == nil {
					err = wire.Unmarshal(e, data, &corev1.Pod{})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
