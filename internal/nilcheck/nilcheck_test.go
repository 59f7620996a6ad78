// SPDX-License-Identifier: Apache-2.0

package nilcheck_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/nilcheck"
)

func TestIs(t *testing.T) {
	var none fmt.Stringer = (*bytes.Buffer)(nil)
	for _, v := range []any{nil, none, (func())(nil), map[string]int(nil)} {
		if !nilcheck.Is(v) {
			t.Errorf("a nil %T is not found", v)
		}
	}
	for _, v := range []any{&bytes.Buffer{}, 0, struct{}{}, func() {}, map[string]int{}} {
		if nilcheck.Is(v) {
			t.Errorf("a %T is taken for nil", v)
		}
	}
}
