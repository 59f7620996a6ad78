// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"full":          {"endpoint: https://skeleton.example\nclusterName: test\ntoken: secret\ncapacity: {cpu: 4}\n", ""},
		"unknown field": {"endpont: https://skeleton.example\n", "endpont"},
		"no endpoint":   {"clusterName: test\n", "endpoint is"},
		"no URL":        {"endpoint: skeleton.example\nclusterName: test\n", "endpoint is"},
		"no cluster":    {"endpoint: https://skeleton.example\n", "clusterName is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte("apiVersion: "+APIVersion+"\nkind: "+Kind+"\n"+tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := LoadConfig(path)
			if err == nil {
				err = c.checkFields()
			}
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("got %v, want an error about %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Token.Value(t.Context()) != "secret" || c.Capacity.Cpu().String() != "4" || c.Capacity.Pods().String() != "20" {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestExampleConfig(t *testing.T) {
	c, err := LoadConfig("../config.yaml")
	if err == nil {
		err = c.checkFields()
	}
	if err != nil {
		t.Error(err)
	}
}
