// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestEachItemHasAllPages checks both formats of lists: with the next page in a separate field, and among links.
func TestEachItemHasAllPages(t *testing.T) {
	type item struct{ ID string }
	for name, c := range map[string]struct {
		pages []string // by the number of the request
		want  string   // the markers, and the items
		fails string
	}{
		"next": {[]string{`{"things":[{"id":"a"},{"id":"b"}],"next":"http://x"}`, `{"things":[{"id":"c"}],"next":null}`}, " b | a b c", ""},
		"links": {[]string{
			`{"things":[{"id":"a"}],"things_links":[{"rel":"self"},{"rel":"next"}]}`, `{"things":[{"id":"b"}],"things_links":[{"rel":"next"}]}`, `{"things":[]}`,
		}, " a b | a b", ""},
		"the same page":               {[]string{`{"things":[{"id":"a"}],"next":"x"}`, `{"things":[{"id":"a"}],"next":"x"}`}, " a | a a", "the same page again"},
		"an empty page before others": {[]string{`{"things":[],"next":"x"}`}, " |", "the same page again"},
		"a page that is cut":          {[]string{`{"things":[{"id":"a"}]`}, " | a", "no JSON"},
	} {
		var got []string
		var markers []string
		err := EachItem("things", url.Values{}, func(query url.Values, read func(io.Reader) error) error {
			markers = append(markers, query.Get("marker"))
			return read(strings.NewReader(c.pages[len(markers)-1]))
		}, func(i item) string { return i.ID }, func(i item) { got = append(got, i.ID) })
		if all := strings.Join(slices.Concat(markers, []string{"|"}, got), " "); all != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %q, %v, want %q, %q", name, all, err, c.want, c.fails)
		}
	}
	n := 0
	err := EachItem("things", url.Values{}, func(_ url.Values, read func(io.Reader) error) error {
		n++
		return read(strings.NewReader(`{"things":[{"id":"` + strings.Repeat("a", n) + `"}],"next":"x"}`))
	}, func(i item) string { return i.ID }, func(item) {})
	if n != maxPages || err == nil || !strings.Contains(err.Error(), "more than 100 pages") {
		t.Errorf("a list without an end: %d pages, %v", n, err)
	}
}
