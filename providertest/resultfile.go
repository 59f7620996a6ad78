// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// The apiVersion and kind of a file of results.
const (
	ResultsAPIVersion = "contract.virtual-kubelet.io/v1alpha1"
	ResultsKind       = "ContractResults"
)

// These environment variables make Run keep its results: ResultsDir is the folder for the results, and
// ResultsVersion the version under test.
const (
	ResultsDir     = "VK_CONTRACT_RESULTS"
	ResultsVersion = "VK_CONTRACT_VERSION"
)

// Subject is the subject of results.
type Subject struct {
	// Provider is its name.
	Provider string `json:"provider"`
	// Version is the version of the program, or of the sources, with the provider.
	Version string `json:"version"`
	// Backend describes the backend of the provider.
	Backend string `json:"backend"`
	// Variant distinguishes the file of these results from the results of the same provider on another backend;
	// "" for the first.
	Variant string `json:"variant,omitempty"`
	// Image is the image of the containers; "" if the harness cannot choose one.
	Image string `json:"image,omitempty"`
}

// ResultFile is the content of a file with the results of the contract.
type ResultFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Subject
	// Date is the end of the run.
	Date time.Time `json:"date"`
	// Partial: not every check was run, because some were left out or the run was interrupted.
	Partial bool `json:"partial,omitempty"`
	// Checks are the checks and their outcomes.
	Checks []CheckOutcome `json:"checks"`
	// Features are the declared features, and whether they are proven.
	Features []FeatureResult `json:"features,omitempty"`
}

// CheckOutcome is a check in a file.
type CheckOutcome struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	// Detail is the failure, or the reason why the check was skipped.
	Detail string `json:"detail,omitempty"`
	// Left are pods that may still be at the backend.
	Left []string `json:"left,omitempty"`
}

// File returns the report as it is kept.
func (r Report) File(s Subject, date time.Time, partial bool) ResultFile {
	f := ResultFile{
		APIVersion: ResultsAPIVersion, Kind: ResultsKind, Subject: s, Date: date.UTC().Truncate(time.Second),
		Partial: partial || r.Interrupted, Features: r.Features,
	}
	for _, k := range r.Results {
		f.Checks = append(f.Checks, CheckOutcome{Name: k.Name, Outcome: k.Outcome, Detail: k.Detail, Left: k.Left})
	}
	slices.SortStableFunc(f.Checks, func(a, b CheckOutcome) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// Keep writes the report of a test as PROVIDER.json or PROVIDER-VARIANT.json into the folder that the
// environment names. It does nothing if the environment names no folder or s has no provider.
func (r Report) Keep(s Subject) error { return r.writeFile(s, false) }

func (r Report) writeFile(s Subject, partial bool) error {
	dir := os.Getenv(ResultsDir)
	if dir == "" || s.Provider == "" {
		return nil
	}
	s.Version = os.Getenv(ResultsVersion)
	file, err := os.CreateTemp(dir, ".contract-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // after a success the file no longer exists
	return r.File(s, time.Now(), partial).Replace(file, filepath.Join(dir, strings.TrimSuffix(s.Provider+"-"+s.Variant, "-")+".json"))
}

// Replace writes the results into file, closes it, and renames it to name. Both must be in the same folder. So
// name never has partial results.
func (f ResultFile) Replace(file *os.File, name string) error {
	data, err := f.Encode(name)
	if err == nil {
		_, err = file.Write(data)
	}
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// CheckResultName returns an error if a file of that name cannot keep results.
func CheckResultName(name string) error {
	switch filepath.Ext(name) {
	case ".json", ".yaml", ".yml":
		return nil
	}
	return fmt.Errorf("file %q: want a name that ends in .json, .yaml or .yml", name)
}

// Encode returns the text of a file, in the format of its file extension.
func (f ResultFile) Encode(name string) ([]byte, error) {
	if err := CheckResultName(name); err != nil {
		return nil, err
	}
	text := &bytes.Buffer{}
	e := json.NewEncoder(text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil || filepath.Ext(name) == ".json" {
		return text.Bytes(), err
	}
	return yaml.JSONToYAML(text.Bytes())
}

// ReadResultFile reads a file from Encode. Unknown fields, another kind of file and unknown features and
// outcomes are errors.
func ReadResultFile(name string) (ResultFile, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return ResultFile{}, fmt.Errorf("read results of the contract: %w", err)
	}
	var f ResultFile
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return ResultFile{}, fmt.Errorf("read results of the contract: %s: %w", name, err)
	}
	if err := f.validateFields(); err != nil {
		return ResultFile{}, fmt.Errorf("read results of the contract: %s: %w", name, err)
	}
	return f, nil
}

func (f ResultFile) validateFields() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.APIVersion != ResultsAPIVersion || f.Kind != ResultsKind {
		refuse("it is %q %q, want %q %q", f.APIVersion, f.Kind, ResultsAPIVersion, ResultsKind)
	}
	for what, value := range map[string]string{"provider": f.Provider, "backend": f.Backend} {
		if value == "" {
			refuse("%s is missing", what)
		}
	}
	if f.Date.IsZero() {
		refuse("date is missing")
	}
	known := []Outcome{Passed, Failed, Skipped}
	for _, k := range f.Checks {
		if !slices.Contains(known, k.Outcome) {
			refuse("check %s: the outcome is %q, want one of %v", k.Name, k.Outcome, known)
		}
	}
	for _, feature := range f.Features {
		if !slices.Contains(capability.Features(), feature.Feature) {
			refuse("there is no feature %q", feature.Feature)
		}
		if !slices.Contains(known, feature.Outcome) {
			refuse("feature %s: the outcome is %q, want one of %v", feature.Feature, feature.Outcome, known)
		}
	}
	return errors.Join(errs...)
}
