// SPDX-License-Identifier: Apache-2.0

package jsonobject

import (
	"encoding/json"
	"testing"
)

// TestEmptyValuesAreLeftOut checks which values are empty. Pointers are never empty.
func TestEmptyValuesAreLeftOut(t *testing.T) {
	data, err := json.Marshal(Object{
		"number": 0, "text": "", "flag": false, "list": []string{}, "map": Object{}, "pointer": (*int)(nil), "nothing": nil,
		"b": new(false), "a": 1, "c": []string{""}, "d": Object{"kept": 0},
	}.WithoutEmpty())
	if want := `{"a":1,"b":false,"c":[""],"d":{"kept":0}}`; err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
}
