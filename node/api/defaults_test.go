// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"
)

func TestSecurityE7DefaultTimeouts(t *testing.T) {
	want := streamTimeouts{idle: 4 * time.Hour, creation: 30 * time.Second}
	if got := makeStreamTimeouts(0, 0); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
