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

// Format describes the configuration files of a provider. C is a struct whose json tags name the fields of a
// file; its types may decode themselves from JSON or text. If C has fields for apiVersion and kind, Load fills
// them.
type Format[C any] struct {
	// APIVersion is the required apiVersion of a file, such as nomad.virtual-kubelet.io/v1alpha1.
	APIVersion string
	// Kind is the required kind of a file, such as NomadProviderConfiguration.
	Kind string
	// Env is the prefix of the environment variables, such as VKUBELET_NOMAD: then VKUBELET_NOMAD_PODS_MAX_AGE
	// sets the field pods.maxAge, a list with commas between its values. The tag of a field may name other
	// variables of the service's tools: env:"NOMAD_ADDR". The first variable with a value counts. With "", only
	// the variables in tags count.
	Env string
	// Renamed maps old names of top-level fields to their current names. A file or an environment variable may still use an old name, with
	// a warning that names the new one; a file with both is an error.
	Renamed map[string]string
	// Default returns the values of unset fields; nil means zero values.
	Default func() C
	// Unversioned reads files that have neither apiVersion nor kind, from before there were any. Such a file need not be YAML unless its
	// extension is .yaml, .yml or .json. Nil: such files are errors.
	Unversioned func(name string, data []byte) (C, error)
}

// Load reads the file at path, and overrides it by the environment. An empty path means no file.
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

// document is a file: its header and the configuration.
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

// rename replaces old field names with their current names.
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

// checkHeader refuses other versions and kinds: their fields may have another meaning.
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
