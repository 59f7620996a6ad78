// SPDX-License-Identifier: Apache-2.0

package process

import "testing"

func TestServerKeepsItsAddressWhileItsNameCannotBeResolved(t *testing.T) {
	answers := []string{"", "192.0.2.1:6443", "", "192.0.2.2:6443"}
	server := lastNumeric{resolve: func(string) string {
		defer func() { answers = answers[1:] }()
		return answers[0]
	}}
	for i, want := range []string{"", "192.0.2.1:6443", "192.0.2.1:6443", "192.0.2.2:6443"} {
		if got := server.lastAddress("api.example:6443"); got != want {
			t.Errorf("question %d: got %q, want %q", i, got, want)
		}
	}
}
