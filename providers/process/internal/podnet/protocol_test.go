// SPDX-License-Identifier: Apache-2.0

package podnet

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// TestProtocol compares the messages of the network process with the messages of this package, field by field.
func TestProtocol(t *testing.T) {
	data, err := os.ReadFile("../../gvisor/podnet/testdata/protocol.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct {
		Request, Answer, Join json.RawMessage
	}
	if err := json.Unmarshal(data, &examples); err != nil {
		t.Fatal(err)
	}
	operations := map[string]bool{}
	for _, example := range examples {
		var r request
		check(t, example.Request, &r)
		check(t, example.Answer, &answer{})
		check(t, example.Join, &Link{})
		operations[r.Op] = true
	}
	for _, op := range []string{opVersion, opConfigure, opAttach, opDetach, opDial} {
		if !operations[op] {
			t.Errorf("there is no example of %s", op)
		}
	}
}

// check decodes a message and encodes it again. Nothing may be lost, and only empty values may be added.
func check(t *testing.T, message json.RawMessage, into any) {
	t.Helper()
	if message == nil {
		return
	}
	d := json.NewDecoder(bytes.NewReader(message))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("%s: %v", message, err)
		return
	}
	again, err := json.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(message, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s becomes %s", message, again)
	}
}
