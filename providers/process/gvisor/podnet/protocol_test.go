// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestProtocol checks that this package reads and writes the messages of testdata/protocol.json. The clients'
// tests read the same file.
func TestProtocol(t *testing.T) {
	data, err := os.ReadFile("testdata/protocol.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct{ Request, Answer, Join json.RawMessage }
	if err := json.Unmarshal(data, &examples); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range examples {
		if e.Join != nil {
			same(t, e.Join, &JoinConfig{})
			seen["join"] = true
			continue
		}
		var a Answer
		same(t, e.Answer, &a)
		var r Request
		same(t, e.Request, &r)
		seen[r.Op] = true
		if _, err := decodeRequest(e.Request); err != nil && err.Error() != a.Error {
			t.Errorf("%s: %v, want %q", e.Request, err, a.Error)
		}
	}
	for _, op := range []string{OpVersion, OpConfigure, OpAttach, OpDial, "join"} {
		if !seen[op] {
			t.Errorf("there is no example of %s", op)
		}
	}
}

// same decodes an example and encodes it again.
func same(t *testing.T, example json.RawMessage, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(example))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("%s: %v", example, err)
		return
	}
	got, err := json.Marshal(into)
	var want bytes.Buffer
	if err == nil {
		err = json.Compact(&want, example)
	}
	if err != nil || string(got) != want.String() {
		t.Errorf("%s is encoded as %s, %v", want.String(), got, err)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	for request, want := range map[string]string{
		`{`:                  "read the request",
		`{"op":"x"}`:         "unknown",
		`{"op":"configure"}`: "has no subject",
		`{"op":"attach"}`:    "has no subject",
		`{"op":"dial","address":"::1","port":80}`: "has no subject",
		`{"op":"version","more":1}`:               "unknown field",
		`{"op":"version"}{}`:                      "more than one",
		`{"op":"configure","config":{"range":"fd00::/64","gateway":"fd00::1","mtu":1500}}`:                                                                                      "not a range of IPv4",
		`{"op":"configure","config":{"range":"10.0.0.0/8","gateway":"11.0.0.1","mtu":1500}}`:                                                                                    "not in the range",
		`{"op":"configure","config":{"range":"10.0.0.0/8","gateway":"10.0.0.1","mtu":65521}}`:                                                                                   "mtu 65521",
		`{"op":"configure","config":{"range":"10.0.0.0/8","gateway":"10.0.0.1","mtu":1500,"nameservers":["[::1]:53"]}}`:                                                         "nameserver",
		`{"op":"configure","config":{"range":"10.0.0.0/8","gateway":"10.0.0.1","mtu":1500,"services":[{"protocol":"sctp"}]}}`:                                                   "sctp",
		`{"op":"configure","config":{"range":"10.0.0.0/8","gateway":"10.0.0.1","mtu":1500,"services":[{"protocol":"tcp","address":"1.1.1.1","port":1,"target":"10.0.0.7:1"}]}}`: "is a pod",
		`{"op":"attach","pod":{"name":"a","address":"::1"}}`:                                                                                                                    "not an IPv4",
		`{"op":"attach","pod":{"name":"a","address":"10.0.0.5","hostPorts":[{"protocol":"tcp","hostPort":1}]}}`:                                                                 "a port is missing",
	} {
		if _, err := decodeRequest([]byte(request)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", request, err, want)
		}
	}
}
