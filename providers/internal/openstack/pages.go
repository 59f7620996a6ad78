// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonlist"
)

// maxPages bounds the pages of a list. A page has up to 1000 items.
const maxPages = 100

// EachItem passes each item of a collection to take, from all pages. get requests a page and gives its body to read. idOf returns the ID of an item.
// The ID of the last item is the marker of the next page. The link to the next page is not used, because it may have an address inside the cloud.
func EachItem[T any](collection string, query url.Values, get func(query url.Values, read func(io.Reader) error) error, idOf func(T) string, take func(T)) error {
	for range maxPages {
		var next *string
		var links []struct{ Rel string }
		last := ""
		err := get(query, func(body io.Reader) error {
			return jsonlist.Read(body, []string{collection}, func(item T) {
				last = idOf(item)
				take(item)
			}, map[string]any{"next": &next, collection + "_links": &links})
		})
		if err != nil || next == nil && !slices.ContainsFunc(links, func(l struct{ Rel string }) bool { return l.Rel == "next" }) {
			return err
		}
		if last == "" || query.Get("marker") == last {
			return errors.New("list " + collection + ": the service gives the same page again")
		}
		query.Set("marker", last)
	}
	return fmt.Errorf("list %s: the list has more than %d pages", collection, maxPages)
}
