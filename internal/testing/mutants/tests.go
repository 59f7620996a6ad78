// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// hang is the extra time for tests with a mutant, in addition to three times the time without one: longer runs mean that the mutant
	// never ends.
	hang = time.Minute
	// soon is the total time of the first tests, which are the fastest ones.
	soon = 3 * time.Second
)

// testProgram is the tests of a package, with all mutants in it.
type testProgram struct {
	dir, work, program string

	reachedBy [][]timedTest // by the number of the place, the fastest first
}

// timedTest is a test and its duration.
type timedTest struct {
	name string
	took time.Duration
}

// result is the result of the tests for a mutant.
type result struct {
	mutant mutant
	passes bool
	why    string
	late   bool // the mutant was not tried, because the time was over
}

func buildTests(ctx context.Context, dir, work, overlay string) (*testProgram, error) {
	p := &testProgram{dir: dir, work: work, program: filepath.Join(work, "tests")}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", p.program, ".")
	build.Dir, build.Stderr = dir, os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the tests of %s with its mutants: %w", dir, err)
	}
	return p, nil
}

// recordReached runs each test once without a mutant, and records the reached places. A failing test is left out.
func (p *testProgram) recordReached(ctx context.Context, places int) error {
	list, err := p.testCommand(ctx, "-test.list", ".").Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", p.dir, err)
	}
	p.reachedBy = make([][]timedTest, places)
	var mu sync.Mutex
	ran := 0
	atOnce(strings.Fields(string(list)), func(name string) {
		file := filepath.Join(p.work, "reached-"+name)
		cmd := p.testCommand(ctx, "-test.run", onlyPattern(timedTest{name: name}))
		cmd.Env = append(os.Environ(), "MUTANTS_REACHED="+file)
		begin := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(begin)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			fmt.Printf("%s fails without a mutant, and is left out: %v\n%s", name, err, out)
			return
		}
		ran++
		reached, _ := os.ReadFile(file) // an error means that it reaches no place
		for line := range bytes.Lines(reached) {
			if place, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && place < places {
				p.reachedBy[place] = append(p.reachedBy[place], timedTest{name, took})
			}
		}
	})
	if ran == 0 {
		return fmt.Errorf("no test of %s passes without a mutant", p.dir)
	}
	for _, tests := range p.reachedBy {
		slices.SortFunc(tests, func(a, b timedTest) int { return int(a.took - b.took) })
	}
	return nil
}

// tryMutants runs for each mutant its tests, until the time is over. The results come in the order of the mutants.
func (p *testProgram) tryMutants(ctx context.Context, mutants []mutant, budget time.Duration) []chan result {
	results, until := make([]chan result, len(mutants)), time.Now().Add(budget)
	numbers := make([]int, len(mutants))
	for i := range mutants {
		numbers[i], results[i] = i, make(chan result, 1)
	}
	go atOnce(numbers, func(i int) {
		if time.Now().After(until) {
			results[i] <- result{late: true}
			return
		}
		results[i] <- p.judgeMutant(ctx, mutants[i])
	})
	return results
}

// judgeMutant runs the fastest tests first, and the rest if they pass.
func (p *testProgram) judgeMutant(ctx context.Context, m mutant) result {
	tests := p.reachedBy[m.place]
	if len(tests) == 0 {
		return result{mutant: m, passes: true, why: "and no test reaches it"}
	}
	n, sum := 0, time.Duration(0)
	for n < len(tests) && (n == 0 || sum+tests[n].took <= soon) {
		sum += tests[n].took
		n++
	}
	passes := p.passesTests(ctx, m, tests[:n]) && (n == len(tests) || p.passesTests(ctx, m, tests[n:]))
	return result{mutant: m, passes: passes, why: fmt.Sprintf("and the tests pass (%d reach it)", len(tests))}
}

// passesTests reports whether the tests pass with the mutant.
func (p *testProgram) passesTests(ctx context.Context, m mutant, tests []timedTest) bool {
	longest := hang
	for _, t := range tests {
		longest += 3 * t.took
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cmd := p.testCommand(ctx, "-test.failfast", "-test.run", onlyPattern(tests...))
	cmd.Env = append(os.Environ(), fmt.Sprintf("MUTANT=%d=%t", m.place, m.value))
	return cmd.Run() == nil
}

func (p *testProgram) testCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.program, args...) //nolint:gosec // the program was built here
	cmd.Dir, cmd.WaitDelay = p.dir, time.Second
	return cmd
}

// onlyPattern returns the pattern of these tests.
func onlyPattern(tests ...timedTest) string {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = regexp.QuoteMeta(t.name)
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// atOnce calls a function for each element, one per processor at the same time, and returns when all are done.
func atOnce[T any](all []T, do func(T)) {
	next := make(chan T)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for one := range next {
				do(one)
			}
		})
	}
	for _, one := range all {
		next <- one
	}
	close(next)
	workers.Wait()
}
