// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// Report has the results of the contract.
type Report struct {
	Results  []Result        `json:"results"`
	Features []FeatureResult `json:"features,omitempty"`
	// Interrupted: the context ended before the last check did. Features are not judged then.
	Interrupted bool `json:"interrupted,omitempty"`
}

// FeatureResult records whether a declared feature is proven.
type FeatureResult struct {
	Feature capability.Feature `json:"feature"`
	Outcome Outcome            `json:"outcome"`
	// Detail names the check that proves the feature, or the reason why it is not proven.
	Detail string `json:"detail"`
}

// Failed returns the names of the failed checks and features.
func (r Report) Failed() (names []string) {
	for _, k := range r.Results {
		if k.Outcome == Failed {
			names = append(names, k.Name)
		}
	}
	for _, f := range r.Features {
		if f.Outcome == Failed {
			names = append(names, "feature "+string(f.Feature))
		}
	}
	return names
}

// Count returns how many checks ended so.
func (r Report) Count(o Outcome) (n int) {
	for _, k := range r.Results {
		if k.Outcome == o {
			n++
		}
	}
	return n
}

// Checks returns every check of the contract.
func Checks() []Check {
	return slices.Concat(creation, environment, files, exits, starts, restarts, probes, hooks, identity, lists, failures, deletion,
		logs, execs, streams, usage, reports, pings, resources, settings, offers, refusals, leftoverChecks)
}

// Verify checks the contract, one check after the other. When ctx ends, the running check removes its pods, and
// the remaining checks are not started. An error means that nothing could be checked.
func Verify(ctx context.Context, h Harness) (Report, error) {
	h = h.withDefaults()
	declared, err := h.readDeclaration(ctx)
	if err != nil {
		return Report{}, err
	}
	var r Report
	for _, k := range h.selectedChecks() {
		result := Result{Name: k.Name, Why: k.Why, Needs: k.Needs, Outcome: Skipped, Detail: interrupted}
		if ctx.Err() == nil {
			result = h.runCheck(ctx, declared, k)
			h.Each(result)
		}
		r.Results = append(r.Results, result)
	}
	if r.Interrupted = ctx.Err() != nil; !r.Interrupted {
		r.Features = h.judgeFeatures(declared, r.Results)
	}
	return r, nil
}

// Testing contains the methods of *testing.T that the function Run needs. It is declared here because programs check the contract too, and
// must not import package testing.
type Testing[T any] interface {
	Helper()
	Context() context.Context
	Run(name string, test func(T)) bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Skip(args ...any)
}

// Run checks the contract as subtests of t, a *testing.T: one for each check and one for each declared feature.
// If the environment variable ResultsDir is set, and Harness.Subject names the provider, it writes the results
// there.
func Run[T Testing[T]](t T, h Harness) {
	t.Helper()
	h = h.withDefaults()
	declared, err := h.readDeclaration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var r Report
	one := func(k Check) {
		t.Run(k.Name, func(t T) {
			result := h.runCheck(t.Context(), declared, k)
			mu.Lock()
			r.Results = append(r.Results, result)
			mu.Unlock()
			showResult(t, result)
		})
	}
	together, alone := splitChecks(h.selectedChecks())
	var wait sync.WaitGroup
	room := make(chan struct{}, h.Parallel)
	for _, k := range together {
		room <- struct{}{}
		wait.Go(func() {
			one(k)
			<-room
		})
	}
	wait.Wait()
	for _, k := range alone {
		one(k)
	}
	whole := len(r.Results) == len(h.selectedChecks()) // false if -run skipped checks: a skipped check may be the proof of a feature
	if whole {
		r.Features = h.judgeFeatures(declared, r.Results)
	}
	for _, f := range r.Features {
		switch f.Outcome {
		case Failed:
			t.Errorf("feature %s: %s", f.Feature, f.Detail)
		case Skipped:
			t.Logf("feature %s is not proven: %s", f.Feature, f.Detail)
		}
	}
	t.Logf("contract: %d checks passed, %d failed, %d skipped", r.Count(Passed), r.Count(Failed), r.Count(Skipped))
	if whole {
		if err := r.writeFile(h.Subject, h.Only != nil); err != nil {
			t.Errorf("keep the results: %v", err)
		}
	}
}

func showResult[T Testing[T]](t T, r Result) {
	t.Helper()
	for _, l := range r.Left {
		t.Logf("left at the backend: %s", l)
	}
	switch r.Outcome {
	case Skipped:
		t.Skip(r.Detail)
	case Failed:
		t.Errorf("%s: %s\nwhy it matters: %s\n%s", r.Name, r.Detail, r.Why, strings.Join(r.Log, "\n"))
	}
}

func (h Harness) selectedChecks() []Check {
	return slices.DeleteFunc(slices.Concat(Checks(), h.Extra), func(k Check) bool { return h.Only != nil && !h.Only.MatchString(k.Name) })
}

func splitChecks(all []Check) (together, alone []Check) {
	for _, k := range all {
		if k.Alone {
			alone = append(alone, k)
		} else {
			together = append(together, k)
		}
	}
	return together, alone
}

// runCheck runs one check, unless the check needs an undeclared feature.
func (h Harness) runCheck(ctx context.Context, declared *capability.Declaration, k Check) Result {
	if f := k.lackedFeature(declared); f != "" {
		return Result{Name: k.Name, Why: k.Why, Needs: k.Needs, Outcome: Skipped, Detail: fmt.Sprintf("the provider does not declare %s", f)}
	}
	namespace := namespacePrefix + strings.NewReplacer("/", "-", " ", "-").Replace(k.Name)
	return k.run(ctx, h, declared, namespace)
}

// lackedFeature returns the first undeclared feature among the needs of the check.
func (k Check) lackedFeature(declared *capability.Declaration) capability.Feature {
	for _, f := range k.Needs {
		if declared != nil && !declared.Has(f) {
			return f
		}
	}
	return ""
}

// readDeclaration returns the declaration of the provider, or nil if it has none.
func (h Harness) readDeclaration(ctx context.Context) (declared *capability.Declaration, err error) {
	k := Check{Name: "declaration", Run: func(c *C) {
		if d, ok := c.openProvider().provider.(capability.Declarer); ok {
			got := d.Capabilities()
			declared = &got
		}
	}}
	if r := k.run(ctx, h, nil, namespacePrefix+"declaration"); r.Outcome != Passed {
		return nil, fmt.Errorf("open the provider: %s", r.Detail)
	}
	return declared, nil
}

// judgeFeatures decides for each declared feature whether it is proven.
func (h Harness) judgeFeatures(declared *capability.Declaration, results []Result) (out []FeatureResult) {
	if declared == nil {
		return nil
	}
	for _, f := range capability.Features() {
		if !declared.Has(f) {
			continue
		}
		failure := FeatureResult{Feature: f, Outcome: Failed, Detail: "it is declared and no check of it passed; declare it as lacking, or say in Harness.Unproven why it cannot be proven here"}
		proofs := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return !slices.Contains(r.Needs, f) || r.Outcome == Skipped })
		slices.SortFunc(proofs, func(a, b Result) int { return cmp.Compare(a.Outcome, b.Outcome) }) // failed first
		why, unproven := h.Unproven[f]
		switch {
		case len(proofs) == 0 && unproven:
			failure.Outcome, failure.Detail = Skipped, why
		case len(proofs) == 0 && h.Only != nil:
			failure.Outcome, failure.Detail = Skipped, "not every check was run"
		case len(proofs) == 0 && h.AllowUnproven:
			failure.Outcome, failure.Detail = Skipped, unprovenHere(f, results)
		case len(proofs) == 0:
		case proofs[0].Outcome == Failed:
			failure.Detail = "check " + proofs[0].Name + " failed"
		case unproven:
			failure.Detail = "check " + proofs[0].Name + " proves it, and Harness.Unproven says that it cannot be proven"
		default:
			failure.Outcome, failure.Detail = Passed, proofs[0].Name
		}
		out = append(out, failure)
	}
	return out
}

// unprovenHere returns why no check proved a feature: why the first check that needs it was skipped.
func unprovenHere(f capability.Feature, results []Result) string {
	for _, r := range results {
		if slices.Contains(r.Needs, f) {
			return fmt.Sprintf("check %s was skipped: %s", r.Name, r.Detail)
		}
	}
	return "no check can prove it on any backend"
}
