// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// contractEvery is the interval at which a check polls the backend for an expected change. It is long because services limit requests.
const contractEvery = 500 * time.Millisecond

// contractRun is one run of the contract.
type contractRun struct {
	*contractFlags
	config      string // the file of --provider-config
	in          io.Reader
	out, stderr io.Writer
	subject     providertest.Subject
	declared    *capability.Declaration
	harness     providertest.Harness
}

// run announces the pods, asks for confirmation, runs the checks, removes leftovers and writes the results.
func (c *contractRun) run(ctx context.Context) error {
	file, err := c.reserve()
	if err != nil {
		return err
	}
	defer file.discard()
	names, err := providertest.Leftovers(ctx, c.harness)
	switch {
	case err != nil:
		return fmt.Errorf("provider %s: nothing was made: %w", c.subject.Provider, err)
	case len(names) > 0:
		return fmt.Errorf("provider %s: the backend has pods of the contract already: %s. If no other run makes them, remove them by --cleanup",
			c.subject.Provider, strings.Join(names, ", "))
	}
	c.announce()
	if err := c.confirm(ctx, "Make them?"); err != nil {
		return fmt.Errorf("%w: nothing was made", err)
	}

	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		// Of the 8: 3 until the check is given up, and 5 until the check of the sweep is given up.
		fmt.Fprintf(c.stderr, "Interrupted: removing what was made, which takes up to %s, and up to %s if calls of the provider are slow or hang. Ctrl-C once more ends it at once and leaves it.\n",
			2*c.patience, 8*c.patience)
	})
	report, err := providertest.Verify(ctx, c.harness)
	if !stop() {
		<-told // the next output comes after the message
	}
	if err != nil {
		return fmt.Errorf("provider %s: %w", c.subject.Provider, err)
	}
	left, unknown := c.sweep(ctx, report)
	failed := c.summarize(report)
	for _, name := range left {
		fmt.Fprintf(c.stderr, "Left at the backend: %s\n", name)
	}
	return alsoWith(endError(report, left, unknown, failed), file.keep(report.File(c.subject, time.Now(), c.names != nil)))
}

// endError returns the error of the command: nil if all checks passed and nothing is left.
func endError(report providertest.Report, left []string, unknown error, failed bool) error {
	switch {
	case unknown != nil:
		return fmt.Errorf("it could not be told whether everything that was made is removed: %w. Look for it by --cleanup, or by hand", unknown)
	case len(left) > 0:
		return exitError{1, fmt.Errorf("%d pods may still be at the backend: remove them by --cleanup, or by hand", len(left))}
	case report.Interrupted:
		return errors.New("interrupted: everything that was made is removed")
	case failed:
		return exitError{code: 1}
	}
	return nil
}

// alsoWith joins err to the error of the command, and keeps the exit code of the command.
func alsoWith(said, err error) error {
	code := exitError{}
	if err != nil && errors.As(said, &code) {
		return exitError{code.code, errors.Join(code.error, err)}
	}
	return errors.Join(said, err)
}

// cleanUp removes the leftovers of an earlier run.
func (c *contractRun) cleanUp(ctx context.Context) error {
	names, err := providertest.Leftovers(ctx, c.harness)
	if err != nil {
		return fmt.Errorf("provider %s: %w", c.subject.Provider, err)
	}
	if len(names) == 0 {
		_, err := fmt.Fprintln(c.out, "The backend has no pods of the contract.")
		return err
	}
	fmt.Fprintf(c.out, "Pods of the contract that the backend has: %s\n", strings.Join(names, ", "))
	if err := c.confirm(ctx, "Remove them?"); err != nil {
		return fmt.Errorf("%w: nothing was removed", err)
	}
	left, err := providertest.RemoveLeftovers(ctx, c.harness)
	if err != nil {
		return fmt.Errorf("provider %s: %w", c.subject.Provider, err)
	}
	if len(left) > 0 {
		return exitError{1, fmt.Errorf("not removed within %s: %s", c.patience, strings.Join(left, ", "))}
	}
	_, err = fmt.Fprintln(c.out, "They are removed.")
	return err
}

// announce prints the cost of the run.
func (c *contractRun) announce() {
	p := c.harness.Plan(c.declared)
	config := "without a configuration file"
	if c.config != "" {
		config = "with " + c.config
	}
	fmt.Fprintf(c.out, "The contract of providers, on provider %s %s: %d checks at most.\n", c.subject.Provider, config, p.Checks)
	fmt.Fprintf(c.out, "They make %d pods with %d containers in all, one after the other, and at most %d pods at once. Each check removes its pods.\n", p.Pods, p.Containers, p.AtOnce)
	fmt.Fprintf(c.out, "It takes about %s where a pod starts within a second, and %s where it needs 20 s.\n", c.about(p, time.Second), c.about(p, 20*time.Second))
	if c.subject.Image != "" {
		fmt.Fprintf(c.out, "Containers run the image %s.\n", c.subject.Image)
	}
}

// about returns the estimated time of a run if a pod needs start to start. Pods that one check creates together start at the same time.
func (c *contractRun) about(p providertest.Plan, start time.Duration) time.Duration {
	return max(time.Minute, (p.Programs + time.Duration(p.Pods)*start).Round(time.Minute))
}

// confirm returns nil if the user agrees. A read of the terminal cannot be interrupted, so the program must exit after the end of ctx.
func (c *contractRun) confirm(ctx context.Context, question string) error {
	if c.yes {
		return nil
	}
	fmt.Fprintf(c.out, "%s Type yes: ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(c.in).ReadString('\n') // the end of the input is an answer too
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return errors.New("interrupted")
	case line := <-answer:
		if strings.EqualFold(line, "yes") {
			return nil
		}
		return errors.New("not confirmed (--yes goes on without asking)")
	}
}

// show prints the result of a check.
func (c *contractRun) show(r providertest.Result) {
	fmt.Fprintf(c.out, "%-7s %s (%s)\n", r.Outcome, r.Name, r.Took.Round(100*time.Millisecond))
	if r.Detail != "" {
		fmt.Fprintf(c.out, "        %s\n", strings.ReplaceAll(r.Detail, "\n", "\n        "))
	}
	if r.Outcome == providertest.Failed {
		fmt.Fprintf(c.out, "        why it matters: %s\n", r.Why)
		for _, line := range r.Log {
			fmt.Fprintf(c.out, "        | %s\n", line)
		}
	}
}

// sweep removes the leftovers of the checks, and returns the names of pods that may be left. With an error, the
// result may be incomplete.
func (c *contractRun) sweep(ctx context.Context, r providertest.Report) ([]string, error) {
	var before, late []string
	for _, k := range r.Results {
		before = append(before, k.Left...)
		if k.GivenUp { // the call may still create the pod after the list was read
			late = append(late, k.Left...)
		}
	}
	left, err := providertest.RemoveLeftovers(context.WithoutCancel(ctx), c.harness)
	if err != nil {
		return before, err
	}
	for _, l := range late {
		pod, _, _ := strings.Cut(l, "): ") // namespace/name (UID
		if !slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(l, pod+"): ") }) {
			left = append(left, l)
		}
	}
	return left, nil
}

// summarize prints the totals and the failures, and returns whether a check failed.
func (c *contractRun) summarize(r providertest.Report) (failed bool) {
	proven := 0
	for _, f := range r.Features {
		if f.Outcome == providertest.Passed {
			proven++
		} else if c.names == nil { // with selected checks, most features are unproven
			fmt.Fprintf(c.out, "feature %s is not proven: %s\n", f.Feature, f.Detail)
		}
	}
	fmt.Fprintf(c.out, "%d checks passed, %d failed, %d were skipped; %d of %d declared features are proven.\n",
		r.Count(providertest.Passed), r.Count(providertest.Failed), r.Count(providertest.Skipped), proven, len(r.Features))
	names := r.Failed()
	if len(names) > 0 {
		fmt.Fprintf(c.out, "Failed: %s\n", strings.Join(slices.Sorted(slices.Values(names)), ", "))
	}
	return len(names) > 0
}

// resultFile is the file for the results. It is opened before any pod is created, so that an unwritable path fails early. Nil: the user
// wants no results.
type resultFile struct {
	*os.File
	name string
}

// reserve makes a temporary file for the results, in the directory of the result file.
func (c *contractRun) reserve() (*resultFile, error) {
	if c.result == "" {
		return nil, nil
	}
	if info, err := os.Stat(c.result); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("--result %s: it is there, and no plain file", c.result)
	}
	f, err := os.CreateTemp(filepath.Dir(c.result), ".contract-*")
	if err != nil {
		return nil, fmt.Errorf("--result %s: %w", c.result, err)
	}
	return &resultFile{f, c.result}, nil
}

// discard removes the file if no results were written.
func (f *resultFile) discard() {
	if f != nil {
		f.Close()
		os.Remove(f.Name())
	}
}

// keep writes the results, atomically.
func (f *resultFile) keep(r providertest.ResultFile) error {
	if f == nil {
		return nil
	}
	if err := r.Replace(f.File, f.name); err != nil {
		return fmt.Errorf("write the results to %s: %w", f.name, err)
	}
	return nil
}
