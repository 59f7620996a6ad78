// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// shortest is the minimum length in bytes of a secret value, without surrounding space. Secrets also contain settings such as "http", "prod",
	// "true" and "8080", and messages would be unreadable without these words. Eight bytes is the minimum length of a password in NIST SP 800-63B. A
	// shorter value can be guessed, and its removal would confirm the guess. Encoded forms of a shorter value are not removed either.
	shortest = 8
	// shortestLine is the minimum length of a line in a longer value, such as a key, for separate removal.
	shortestLine = 16
	// versions is the number of recorded versions of a value, because the backend may have an older version.
	versions = 3
)

// Values are the secret values of one pod. The zero value has none. It is safe for concurrent use.
type Values struct {
	mu    sync.Mutex
	known map[string][]version // by source; guarded by mu
}

type version struct {
	name   string
	values [][]byte // shared with their owner, never changed
}

// Remember adds the values of a version of a source, such as a Secret. The last versions of each source are kept. The values are not copied.
func (v *Values) Remember(source, name string, values ...[]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.known[source]
	if slices.ContainsFunc(all, func(known version) bool { return known.name == name }) {
		return
	}
	if v.known == nil {
		v.known = map[string][]version{}
	}
	all = append(slices.Clone(all), version{name, values})
	v.known[source] = all[max(0, len(all)-versions):]
}

// Forget removes the sources whose names have the prefix.
func (v *Values) Forget(prefix string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.known, func(source string, _ []version) bool { return strings.HasPrefix(source, prefix) })
}

// visitForms calls f with every form in which a text may contain a value.
//
// No form is shorter than the value without its surrounding space, or than one of its lines. So visitForms skips values that do not fit into a text
// of that length, because a value may be as large as a Secret.
func (v *Values) visitForms(length int, f func(string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, all := range v.known {
		for _, one := range all {
			for _, value := range one.values {
				if trimmed := bytes.TrimSpace(value); len(trimmed) <= length {
					visitValue(value, f)
				} else {
					visitLines(trimmed, f)
				}
			}
		}
	}
}

// visitValue calls f with the forms of a value.
func visitValue(value []byte, f func(string)) {
	text := bytes.TrimSpace(value)
	if len(text) < shortest {
		return
	}
	var seen []string
	once := func(form string) {
		if !slices.Contains(seen, form) {
			seen = append(seen, form)
			f(form)
		}
	}
	for _, s := range slices.Compact([]string{string(value), string(text)}) {
		quoted := strconv.Quote(s)
		asJSON, _ := json.Marshal(s) // of a string: there is no error
		for _, form := range []string{
			s, quoted[1 : len(quoted)-1], string(asJSON[1 : len(asJSON)-1]), url.QueryEscape(s), url.PathEscape(s), url.UserPassword("", s).String()[1:],
			base64.RawStdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)), // padding after these forms stays in the text
		} {
			once(form)
		}
	}
	visitLines(text, f)
}

// visitLines calls f with the lines of a value, if they are long enough to be distinctive.
func visitLines(value []byte, f func(string)) {
	if !bytes.ContainsRune(value, '\n') {
		return
	}
	for line := range bytes.Lines(value) {
		if line = bytes.TrimSpace(line); len(line) >= shortestLine {
			f(string(line))
		}
	}
}

// span is a part of a text.
type span struct{ from, to int }

// removeValues returns the text without the values, and the length of the longest value.
func removeValues(text string, all []*Values) (clean string, longest int) {
	var found []span
	for _, v := range all {
		if v == nil {
			continue
		}
		v.visitForms(len(text), func(form string) {
			longest = max(longest, len(form))
			for from := 0; ; {
				at := strings.Index(text[from:], form)
				if at < 0 {
					return
				}
				found = append(found, span{from + at, from + at + len(form)})
				from += at + 1 // the next occurrence may overlap this one
			}
		})
	}
	if len(found) == 0 {
		return text, longest
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	var out strings.Builder
	end := 0
	for i, s := range found {
		if i == 0 || s.from > end {
			out.WriteString(text[end:s.from])
			out.WriteString(mark)
		}
		end = max(end, s.to)
	}
	out.WriteString(text[end:])
	return out.String(), longest
}
