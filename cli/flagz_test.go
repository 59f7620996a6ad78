// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagzShowsNoSecret(t *testing.T) {
	o := &options{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.define(fs)
	if err := fs.Parse([]string{"--disable-kubelet-api", "--nodename=n1", "--trace-endpoint=https://canary:canary@traces.example:4318/v1?token=canary"}); err != nil {
		t.Fatal(err)
	}
	r, err := o.resolve(fs, func(string) string { return "" })
	if r == nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(o.shown); strings.Contains(text, "canary") || o.shown["trace-endpoint"] != "https://traces.example:4318/..." {
		t.Errorf("got %s", text)
	}
	if o.shown["nodename"] != "n1" || o.shown["port"] != "10250" {
		t.Errorf("got %v, want the settings in effect", o.shown)
	}
}
