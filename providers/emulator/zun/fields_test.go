// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBodiesAreCheckedBySchema checks bodies that Zun accepts, and bodies that its schema refuses.
func TestBodiesAreCheckedBySchema(t *testing.T) {
	for body, takes := range map[string]bool{
		`{"image": "img"}`: true, `{"image": "img", "cpu": 0.1, "memory": "4", "command": ["a"], "entrypoint": ["b"]}`: true,
		`{}`: false, `{"image": "i"}`: false, `{"image": "img", "name": "x"}`: false, `{"image": "img", "cpu": 0.01}`: false, `{"image": "img", "cpu": 17}`: false,
		`{"image": "img", "memory": "3"}`: false, `{"image": "img", "memory": "8193"}`: false, `{"image": "img", "memory": "1Gi"}`: false, `{"image": "img", "command": "a"}`: false,
		`{"image": "img", "digest": "x"}`: false, `{"image": "img", "security_groups": ["a"], "exposed_ports": {}}`: false, `{"image": "img", "security_groups": ["a"]}`: true,
		`{"image": "img", "restart_policy": {"Name": "no"}}`: true, `{"image": "img", "restart_policy": {"Name": "never"}}`: false,
		`{"image": "img", "environment": {"A": 1}}`: false, `{"image": "img", "nets": [{"network": "a"}]}`: true, `{"image": "img", "nets": [{"network": "a", "port": "b"}]}`: false,
		`{"image": "img", "mounts": [{"type": "bind", "source": "YQ==", "destination": "/a"}]}`: true, `{"image": "img", "mounts": [{"type": "bind", "source": "YQ=="}]}`: false,
	} {
		var o any
		if err := json.Unmarshal([]byte(body), &o); err != nil {
			t.Fatal(err)
		}
		if err := CheckBody("containers.post", o); (err == nil) != takes {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestNewestVersionIsToldWithoutToken checks that the newest version needs no token. Clients of OpenStack read it before they log in.
func TestNewestVersionIsToldWithoutToken(t *testing.T) {
	for newest, want := range map[string]string{"": "1.40", "1.22": "1.22"} {
		out := httptest.NewRecorder()
		(&Server{Newest: newest}).ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/container", nil))
		var got struct {
			Versions []struct {
				Status     string
				MaxVersion string `json:"max_version"`
			}
		}
		if err := json.Unmarshal(out.Body.Bytes(), &got); err != nil || len(got.Versions) != 1 || got.Versions[0].MaxVersion != want || got.Versions[0].Status != "CURRENT" {
			t.Errorf("%q: got %d %s, %v, want %s", newest, out.Code, out.Body, err, want)
		}
	}
}

// TestFullPageHasNext checks that each full page names a next page, as in Zun. The next page may be empty.
func TestFullPageHasNext(t *testing.T) {
	s := &Server{records: []*record{{uuid: "a"}, {uuid: "b"}}}
	for query, want := range map[string]string{"limit=1": "a true", "limit=2": "ab true", "limit=3": "ab false", "limit=2&marker=b": " false"} {
		page, err := s.list(httptest.NewRequest(http.MethodGet, Path+"containers?"+query, nil), false)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range page["containers"].([]object) {
			got += c["uuid"].(string)
		}
		if got += fmt.Sprint(" ", page["next"] != nil); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// TestVersionsAreChecked checks that a server with an older maximum version refuses each request.
func TestVersionsAreChecked(t *testing.T) {
	for newest, want := range map[string]int{"": http.StatusOK, "1.40": http.StatusOK, "1.39": http.StatusNotAcceptable} {
		s := &Server{Newest: newest, Gate: Gate{Applications: map[string]string{"a": "b"}}}
		in := httptest.NewRecorder()
		s.ServeHTTP(in, httptest.NewRequest(http.MethodPost, identityPath+"/auth/tokens", strings.NewReader(`{"auth": {"identity": {"methods": ["application_credential"], "application_credential": {"id": "a", "secret": "b"}}}}`)))
		r := httptest.NewRequest(http.MethodGet, Path+"containers", nil)
		r.Header.Set("X-Auth-Token", in.Header().Get("X-Subject-Token"))
		r.Header.Set("OpenStack-API-Version", "container 1.40")
		out := httptest.NewRecorder()
		s.ServeHTTP(out, r)
		if out.Code != want {
			t.Errorf("newest %q: got %d, want %d: %s", newest, out.Code, want, out.Body)
		}
	}
}
