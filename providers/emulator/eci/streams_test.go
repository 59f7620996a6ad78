// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestCommandsHaveALimit checks the number of words, the characters of each word, and the bytes of the whole
// command.
func TestCommandsHaveALimit(t *testing.T) {
	s := &Server{groups: []*group{{id: "eci-1"}}}
	word := `"` + strings.Repeat("x", 250) + `"`
	for name, c := range map[string]struct {
		command string
		ok      bool
	}{
		"eight long words": {"[" + strings.Repeat(word+",", 7) + word + "]", true},
		"nine long words":  {"[" + strings.Repeat(word+",", 8) + word + "]", false},
		"21 words":         {"[" + strings.Repeat(`"x",`, 20) + `"x"]`, false},
		"a longer word":    {`["` + strings.Repeat("x", 257) + `"]`, false},
	} {
		form := url.Values{"ContainerGroupId": {"eci-1"}, "ContainerName": {"c"}, "Command": {c.command}}
		if _, err := s.openExec(httptest.NewRequest(http.MethodPost, "/", nil), form); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
