// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"encoding/json"
	"net/url"
	"os"
	"testing"
)

// golden has results of the vendor's signer, made by the module golden.
type golden struct {
	Source, Made string
	Cases        []struct {
		Name, Method, Endpoint, Path, Body, Access, Secret, Authorization string
		Query                                                             url.Values
		Header                                                            map[string]string
	}
}

func TestAuthorizationIsTheVendors(t *testing.T) {
	for file, authorization := range map[string]func(r Request, k Key) string{
		"testdata/golden.json": Authorization,
		"testdata/acs3.json":   func(r Request, k Key) string { return AuthorizationACS3(r.Method, r.URL, r.Header, k) },
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g golden
		if err := json.Unmarshal(data, &g); err != nil {
			t.Fatal(err)
		}
		if len(g.Cases) < 5 || g.Source == "" || g.Made == "" {
			t.Fatalf("%s has %d cases of %q made on %q", file, len(g.Cases), g.Source, g.Made)
		}
		for _, c := range g.Cases {
			u, err := url.Parse(c.Endpoint)
			if err != nil {
				t.Fatal(err)
			}
			u.Path, u.RawQuery = c.Path, c.Query.Encode()
			got := authorization(Request{Method: c.Method, URL: u, Header: c.Header, Body: []byte(c.Body)}, Key{Access: c.Access, Secret: c.Secret})
			if got != c.Authorization {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", file, c.Name, got, c.Authorization)
			}
		}
	}
}

func TestEscapedSlashStaysInItsPart(t *testing.T) {
	u, err := url.Parse("https://example.com/a%2Fb/c")
	if err != nil {
		t.Fatal(err)
	}
	if got := canonicalPath(u); got != "/a%2Fb/c/" {
		t.Errorf("the path is signed as %s", got)
	}
}
