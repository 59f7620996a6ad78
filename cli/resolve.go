// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
)

// The apiVersion and kind of a configuration file.
const (
	configAPIVersion = "virtual-kubelet.io/v1alpha1"
	configKind       = "VirtualKubeletConfiguration"
)

// resolved has the settings and their origins.
type resolved struct {
	*options
	flags *pflag.FlagSet
	// origins has the origin of each value, by flag.
	origins  map[string]string
	warnings []warning
	// unread has the errors of settings that could not be read. Contradictions between the other settings are still reported.
	unread error
}

// resolve completes the parsed flags from the environment and the file, and checks everything. All errors are
// joined; the settings are nil only if the file cannot be read at all.
func (o *options) resolve(fs *pflag.FlagSet, getenv func(string) string) (*resolved, error) {
	r := &resolved{options: o, flags: fs, origins: map[string]string{}}
	fields, err := readConfigFile(o.ConfigFile)
	if fields == nil && err != nil {
		return nil, err
	}
	errs := []error{err}
	for _, s := range settings() {
		errs = append(errs, r.settle(s, getenv, fields))
	}
	for _, n := range oldNames {
		errs = append(errs, r.settleOld(n, getenv))
	}
	r.unread = errors.Join(errs...)
	for _, text := range o.klog.warnings(fs) {
		r.warnings = append(r.warnings, warning{text: text})
	}
	o.shown = r.show()
	return r, errors.Join(r.unread, r.oneOrMany(), r.checkBootstrap(), o.validate())
}

// show returns the settings by flag, without credentials.
func (r *resolved) show() map[string]string {
	shown := map[string]string{}
	for _, s := range settings() {
		if s.group == "" {
			continue // it only names the configuration file
		}
		value := r.flags.Lookup(s.flag).Value.String()
		if u, err := url.Parse(value); err == nil && u.Host != "" && (u.User != nil || u.RawQuery != "") {
			value = u.Scheme + "://" + u.Host + "/..."
		}
		shown[s.flag] = value
	}
	return shown
}

// checkBootstrap requires explicit paths for the files to write: the default path is the user's own kubeconfig.
func (r *resolved) checkBootstrap() error {
	switch {
	case r.BootstrapKubeconfig == "":
		return nil
	case r.origins["kubeconfig"] == "default" || r.Kubeconfig == "" || r.CertDir == "":
		return errors.New("--bootstrap-kubeconfig needs --kubeconfig, the file to write, and --cert-dir")
	case len(filepath.SplitList(r.Kubeconfig)) > 1:
		return fmt.Errorf("--bootstrap-kubeconfig needs one file as --kubeconfig, to write it, and %s is a list", r.Kubeconfig)
	case r.KubeContext != "":
		return errors.New("--bootstrap-kubeconfig writes --kubeconfig with one context, so it contradicts --context")
	case len(r.Nodes) > 0:
		return errors.New("--bootstrap-kubeconfig is for the identity of one node; with --nodes, use a service account")
	}
	return nil
}

// oneOrMany refuses settings for one node together with settings for many.
func (r *resolved) oneOrMany() error {
	if len(r.Nodes) == 0 {
		return nil
	}
	origin, given := r.origins["nodename"], r.flags.Lookup("nodename")
	if origin != "default" && given.Value.String() != given.DefValue {
		return fmt.Errorf("--nodes (%s) contradicts --nodename (%s)", r.origins["nodes"], origin)
	}
	return nil
}

// settle determines the value of one setting.
func (r *resolved) settle(s setting, getenv func(string) string, fields map[string]configfile.Field) error {
	f := r.flags.Lookup(s.flag)
	r.origins[s.flag] = "default"
	used := ""
	for _, name := range append([]string{s.flag}, s.oldNames(true)...) {
		if r.flags.Changed(name) {
			used = name
		}
	}
	if used != "" {
		r.origins[s.flag] = "flag --" + used
		return nil
	}
	for _, name := range append(slices.Clone(s.env), s.oldNames(false)...) {
		if value := getenv(name); value != "" {
			r.origins[s.flag] = "environment " + name
			if err := f.Value.Set(value); err != nil {
				return fmt.Errorf("environment variable %s is %q, want %s", name, value, typeName(f))
			}
			return nil
		}
	}
	if field, ok := fields[s.field]; ok {
		r.origins[s.flag] = field.Position.String()
		return setFromFile(f, field)
	}
	return nil
}

func setFromFile(f *pflag.Flag, field configfile.Field) error {
	values, err := field.Values()
	if err != nil {
		return err
	}
	if t := f.Value.Type(); len(values) != 1 && t != "stringToString" && t != "stringSlice" {
		return fmt.Errorf("field %q at %s must be one value", field.Name, field.Position)
	}
	for _, value := range values {
		if err := f.Value.Set(value); err != nil {
			return fmt.Errorf("field %q at %s is %q, want %s", field.Name, field.Position, value, typeName(f))
		}
	}
	return nil
}

// readConfigFile returns the fields of the file at path. The error names unknown fields. With an error and no fields, the file could not be
// read.
func readConfigFile(path string) (map[string]configfile.Field, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	fields, err := configfile.Fields(path, data)
	if err != nil {
		return nil, err
	}
	known := []string{"apiVersion", "kind"}
	for _, s := range settings() {
		if s.field != "" {
			known = append(known, s.field)
		}
	}
	byName, errs := map[string]configfile.Field{}, []error{}
	for _, f := range fields {
		byName[f.Name] = f
		if !slices.Contains(known, f.Name) {
			errs = append(errs, configfile.Unknown(f.Name, f.Position, configfile.Nearest(f.Name, known)))
		}
	}
	for _, header := range [][2]string{{"apiVersion", configAPIVersion}, {"kind", configKind}} {
		name, want := header[0], header[1]
		f, ok := byName[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s is missing, want %s: %s", path, name, name, want))
			continue
		}
		if got, err := f.Values(); err != nil || len(got) != 1 || got[0] != want {
			errs = append(errs, fmt.Errorf("field %q at %s must be %s", name, f.Position, want))
		}
	}
	return byName, errors.Join(errs...)
}

// typeName returns the type of a flag in words for users.
func typeName(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "Level": // Level is the type of klog's v
		return "a whole number"
	case "string":
		return "a text"
	case "float32":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 1m30s"
	case "stringToString":
		return "a mapping of key=value"
	case "stringSlice":
		return "a list"
	}
	return f.Value.Type()
}
