// SPDX-License-Identifier: Apache-2.0

package trustbundles

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"maps"
	"slices"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
)

// normalizeBundles returns the certificates of bundles, each once, without other content. They are sorted by digest, so the order does not depend on
// the order of the bundles, and does not suggest a ranking.
func normalizeBundles(bundles []certapi.Bundle) []byte {
	certificates := map[[sha256.Size]byte][]byte{}
	for i := range bundles {
		for block, rest := pem.Decode([]byte(bundles[i].Spec.TrustBundle)); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "CERTIFICATE" {
				certificates[sha256.Sum256(block.Bytes)] = block.Bytes
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(certificates), func(a, b [sha256.Size]byte) int {
		return bytes.Compare(a[:], b[:])
	})
	var out bytes.Buffer
	for _, digest := range order {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificates[digest]}))
	}
	return out.Bytes()
}
