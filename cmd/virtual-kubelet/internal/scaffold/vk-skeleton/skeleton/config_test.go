// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"full":          {"endpoint: https://skeleton.example\ntoken: secret\npollInterval: 5s\ncapacity: {cpu: 4}\n", ""},
		"unknown field": {"endpont: https://skeleton.example\n", "endpont"},
		"no interval":   {"pollInterval: 0s\n", "pollInterval"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte("apiVersion: "+APIVersion+"\nkind: "+Kind+"\n"+tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := LoadConfig(path)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("got %v, want an error about %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Token.Value(t.Context()) != "secret" || c.PollInterval.Duration != 5*time.Second || c.Capacity.CPU.String() != "4" || c.Capacity.Pods.String() != "20" {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestExampleConfig(t *testing.T) {
	if _, err := LoadConfig("../config.yaml"); err != nil {
		t.Error(err)
	}
}
