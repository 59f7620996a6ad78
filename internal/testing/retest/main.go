// SPDX-License-Identifier: Apache-2.0

// Command retest runs the lanes of make test, and repeats the failed tests when all lanes have ended.
//
//	retest lane DIR [flags] packages   runs go test, and records in DIR which tests failed
//	retest repeat DIR N                repeats the failed tests of all lanes, each once, if they are at most N
//
// A repeat is a process of its own, with the environment and the flags of the lane. If the test passes then, it
// is printed as FLAKY, with the output of its failure. If tests of a package did not run, because the package
// panicked or timed out, the whole package is repeated. Failures that cannot be flakes are not repeated: a
// package that does not build, a data race, a random input that rapid found.
//
// Note: a lane whose failures can be repeated ends with 0, since retest repeat decides on them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// record holds the command and the results of a lane, for the repeats of its failed tests.
type record struct {
	// Dir, Env and Flags are the directory, environment and flags of the lane's go test.
	Dir        string
	Env, Flags []string
	results
}

func main() {
	if err := runCommand(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "retest:", err)
		os.Exit(1)
	}
}

func runCommand(out io.Writer, args []string) error {
	switch {
	case len(args) >= 3 && args[0] == "lane":
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		return runLane(out, args[1], record{Dir: dir, Env: os.Environ()}, args[2:])
	case len(args) == 3 && args[0] == "repeat":
		most, err := strconv.Atoi(args[2])
		if err != nil {
			return fmt.Errorf("number of tests to repeat: %w", err)
		}
		return repeatFailures(out, args[1], most)
	}
	return errors.New("usage: retest lane DIR [flags of go test] packages, or retest repeat DIR N")
}

// runLane runs go test and leaves a record in the folder. It returns an error if no repeat can make the run
// pass.
func runLane(out io.Writer, into string, r record, args []string) error {
	isPackage := func(arg string) bool {
		return !strings.HasPrefix(arg, "-") && (strings.HasPrefix(arg, ".") || strings.Contains(arg, "/"))
	}
	r.Flags = slices.DeleteFunc(slices.Clone(args), isPackage)
	var err error
	if r.results, err = r.goTest(out, args...); err != nil {
		return err
	}
	if len(r.Failures) == 0 {
		r.Env = nil // the environment may have secrets, and no test is repeated
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(into, "lane-*.json") // of mode 0600
	if err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

// goTest runs go test. It returns an error if go test fails for another reason than the failures in its results.
func (r record) goTest(out io.Writer, args ...string) (results, error) {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = r.Dir, r.Env, os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return results{}, err
	}
	if err := cmd.Start(); err != nil {
		return results{}, err
	}
	got, err := readResults(events, out)
	if ended := cmd.Wait(); ended != nil && (len(got.Failures) == 0 || cmd.ProcessState.ExitCode() != 1) {
		err = errors.Join(err, fmt.Errorf("go test in %s: %w", r.Dir, ended))
	}
	return got, err
}

// repeatFailures reads the records of the folder and repeats the failures. It returns an error unless each of them
// passes.
func repeatFailures(out io.Writer, from string, most int) error {
	paths, err := filepath.Glob(filepath.Join(from, "lane-*.json"))
	if err != nil {
		return err
	}
	var sum results
	var lanes []record // record of the lane of each failure
	for _, path := range paths {
		var r record
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			return fmt.Errorf("record of a lane %s: %w", path, err)
		}
		sum.Tests, sum.Skipped = sum.Tests+r.Tests, sum.Skipped+r.Skipped
		for _, f := range r.Failures {
			sum.Failures, lanes = append(sum.Failures, f), append(lanes, r)
		}
	}
	var flaky, failed []string
	for i, f := range sum.Failures {
		why := f.Finding
		if why == "" && len(sum.Failures) > most {
			why = fmt.Sprintf("not repeated, since %d failed and at most %d are", len(sum.Failures), most)
		}
		if why == "" {
			fmt.Fprintln(out, "repeat", f.fullName())
			why = lanes[i].repeatOne(out, f)
		}
		if why == "" {
			flaky = append(flaky, fmt.Sprintf("FLAKY %s\n%s", f.fullName(), f.Output))
		} else {
			failed = append(failed, fmt.Sprintf("FAILED %s: %s\n", f.fullName(), why))
		}
	}
	fmt.Fprint(out, strings.Join(flaky, ""), strings.Join(failed, ""))
	fmt.Fprintf(out, "DONE %d tests, %d skipped, %d flaky, %d failures\n", sum.Tests, sum.Skipped, len(flaky), len(failed))
	if len(failed) > 0 {
		return errors.New("tests failed")
	}
	return nil
}

// repeatOne repeats a test, or a package, in a new process. It returns the reason why the failure stays a
// failure, or "".
func (r record) repeatOne(out io.Writer, f failure) string {
	args := append(slices.Clone(r.Flags), "-count=1")
	if f.Test != "" {
		args = append(args, "-run=^"+f.Test+"$")
	}
	switch again, err := r.goTest(out, append(args, f.Package)...); {
	case err != nil:
		return err.Error()
	case len(again.Failures) > 0:
		return "failed again in its repeat"
	case f.Test != "" && !slices.Contains(again.Passed, f.Test):
		return "its repeat did not run it"
	}
	return ""
}
