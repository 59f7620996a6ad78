// SPDX-License-Identifier: Apache-2.0

package nodeutil

import "testing"

func TestStreamLimitsOfNode(t *testing.T) {
	for _, tt := range []struct{ inAll, perUser, wantAll, wantPerUser int }{
		{0, 0, 2000, 1500},
		{1, 0, 1, 1},
		{100, 0, 100, 75},
		{100, 10, 100, 10},
		{100, -1, 100, -1},
		{-1, 0, -1, 0},
		{-1, 7, -1, 7},
	} {
		cfg := &NodeConfig{MaxStreams: tt.inAll, MaxStreamsPerUser: tt.perUser}
		if inAll, perUser := cfg.streamLimits(); inAll != tt.wantAll || perUser != tt.wantPerUser {
			t.Errorf("with %d and %d: got %d and %d, want %d and %d", tt.inAll, tt.perUser, inAll, perUser, tt.wantAll, tt.wantPerUser)
		}
	}
}
