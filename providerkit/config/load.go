// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Format is what the configuration files of a provider look like. C is a struct whose json tags name the fields of a file; its types may
// decode themselves from JSON or text. It may have fields for apiVersion and kind, which are then filled.
type Format[C any] struct {
	// APIVersion is what a file must have as apiVersion, such as nomad.virtual-kubelet.io/v1alpha1.
	APIVersion string
	// Kind is what a file must have as kind, such as NomadProviderConfiguration.
	Kind string
	// Env begins the names of environment variables, such as VKUBELET_NOMAD: the field pods.maxAge is then set by
	// VKUBELET_NOMAD_PODS_MAX_AGE, a list with commas between its values. A field may have other names, which the tools of
	// the service use, in its tag: env:"NOMAD_ADDR"; the first that is set counts. "" is only those of tags.
	Env string
	// Renamed are old names of top-level fields, and the names that they have now. A file or an environment variable with an old name is read, and a
	// warning names the new one; a file with both is an error.
	Renamed map[string]string
	// Default returns what fields have that are not given. Nil: their zero values.
	Default func() C
	// Unversioned reads files that have neither apiVersion nor kind, from before there were any. Such a file need not be YAML if it is not
	// called so (.yaml, .yml, .json). Nil: they are errors.
	Unversioned func(name string, data []byte) (C, error)
}

// Load returns what the file at path says, and the environment above it. An empty path is no file.
func (f Format[C]) Load(path string) (C, error) {
	c, err := f.read(path)
	if err == nil {
		err = environment{prefix: f.Env, renamed: f.Renamed, lookup: os.LookupEnv}.apply(&c)
	}
	if err != nil {
		var none C
		return none, err
	}
	return c, nil
}

// document is a file: what it says of itself, and the configuration.
type document[C any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Config     C      `json:",inline"`
}

func (f Format[C]) read(path string) (C, error) {
	var d document[C]
	if f.Default != nil {
		d.Config = f.Default()
	}
	if path == "" {
		return d.Config, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return d.Config, fmt.Errorf("read the provider's configuration: %w", err)
	}
	fields, err := configfile.Fields(path, data)
	if f.Unversioned != nil && !slices.ContainsFunc(fields, isHeader) && (err == nil || !isYAML(path)) {
		return f.Unversioned(path, data)
	}
	if err == nil {
		err = f.checkHeader(path, fields)
	}
	if err == nil {
		data, err = f.rename(fields, data)
	}
	if err == nil {
		err = configfile.Decode(path, data, &d)
	}
	return d.Config, err
}

// rename gives fields with an old name the new one.
func (f Format[C]) rename(fields []configfile.Field, data []byte) ([]byte, error) {
	for _, old := range fields {
		now := f.Renamed[old.Name]
		if now == "" {
			continue
		}
		if slices.ContainsFunc(fields, func(other configfile.Field) bool { return other.Name == now }) {
			return nil, fmt.Errorf("field %q at %s: it is the old name of %s, which is there too: remove it", old.Name, old.Position, now)
		}
		log.G(context.Background()).Warnf("The field %s at %s is called %s now: rename it", old.Name, old.Position, now)
		data = old.Rename(data, now)
	}
	return data, nil
}

func isYAML(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
}

func isHeader(f configfile.Field) bool { return f.Name == "apiVersion" || f.Name == "kind" }

// checkHeader insists on the version and kind that are known: a field of another may mean something else.
func (f Format[C]) checkHeader(path string, fields []configfile.Field) error {
	var errs []error
	for _, want := range []struct{ field, value string }{{"apiVersion", f.APIVersion}, {"kind", f.Kind}} {
		i := slices.IndexFunc(fields, func(field configfile.Field) bool { return field.Name == want.field })
		if i < 0 {
			errs = append(errs, fmt.Errorf("%s: %s is missing, want %s: %s", path, want.field, want.field, want.value))
			continue
		}
		values, err := fields[i].Values()
		if err == nil && (len(values) != 1 || values[0] != want.value) {
			err = fmt.Errorf("field %q at %s: unknown %s %q; known is: %s",
				want.field, fields[i].Position, want.field, strings.Join(values, ", "), want.value)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
