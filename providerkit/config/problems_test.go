// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"testing"
)

func TestProblemsAreToldAtOnceInOneOrder(t *testing.T) {
	p := Problems{Provider: "toy"}
	if err := p.Err(); err != nil {
		t.Errorf("without a problem: got %v", err)
	}
	p.Add("region: %q: want a name", "?")
	p.Add("caFile: %w", fs.ErrNotExist)
	err := p.Err()
	if want := "toy provider: caFile: file does not exist\ntoy provider: region: \"?\": want a name"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause of a problem is lost")
	}
}
