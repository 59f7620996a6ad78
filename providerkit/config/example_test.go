// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// The configuration of a provider is a struct. A Secret in it is never shown, and is read again when its file changes.
func Example() {
	type Config struct {
		Region string        `json:"region"`
		Token  config.Secret `json:"token"`
		Pods   int           `json:"pods"`
	}
	format := config.Format[Config]{
		APIVersion: "cloud.example/v1", Kind: "CloudConfiguration", Env: "EXAMPLE_CLOUD",
		Default: func() Config { return Config{Pods: 110} },
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: cloud.example/v1\nkind: CloudConfiguration\nregion: north\ntoken: abc\n"), 0o600); err != nil {
		panic(err)
	}

	c, err := format.Load(file)
	fmt.Printf("%+v %v\n", c, err)
	fmt.Println(c.Token.Value(context.Background()))
	// Output:
	// {Region:north Token:[redacted] Pods:110} <nil>
	// abc
}
