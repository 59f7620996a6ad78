// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxFleet bounds the nodes of one process. It makes a mistyped range an error before the memory is exhausted.
const maxFleet = 10000

// NodeNames returns the names that match patterns, in order. A pattern is a name with any number of ranges of
// numbers in brackets: vk-[000-999] stands for a thousand names, from vk-000 to vk-999. Numbers have as many
// digits as the lower end of the range. Names must be valid and all different, and at most 10,000.
func NodeNames(patterns ...string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		more, err := expand(pattern, maxFleet-len(names))
		if err != nil {
			return nil, fmt.Errorf("node names %q: %w", pattern, err)
		}
		names = append(names, more...)
	}
	return names, checkNames(names)
}

// expand returns the matches of one pattern, at most limit names.
func expand(pattern string, limit int) ([]string, error) {
	head, rest, ranged := strings.Cut(pattern, "[")
	if strings.Contains(head, "]") {
		return nil, errors.New("a ] has no [ before it")
	}
	if !ranged {
		return []string{pattern}, nil
	}
	inside, tail, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, errors.New("a [ has no ] after it")
	}
	low, high, err := parseRange(inside)
	if err != nil {
		return nil, err
	}
	tails, err := expand(tail, limit)
	if err != nil {
		return nil, err
	}
	if count := high - low + 1; count > limit/max(len(tails), 1) {
		return nil, fmt.Errorf("too many: one process has at most %d nodes", maxFleet)
	}
	width := strings.IndexByte(inside, '-')
	names := make([]string, 0, (high-low+1)*len(tails))
	for i := low; i <= high; i++ {
		for _, t := range tails {
			names = append(names, fmt.Sprintf("%s%0*d%s", head, width, i, t))
		}
	}
	return names, nil
}

// parseRange reads two numbers with a dash between them.
func parseRange(text string) (low, high int, err error) {
	a, b, _ := strings.Cut(text, "-")
	first, errA := strconv.ParseUint(a, 10, 31)
	last, errB := strconv.ParseUint(b, 10, 31)
	if errA != nil || errB != nil || first > last {
		return 0, 0, fmt.Errorf("range [%s]: want two numbers, the smaller one first, such as [000-999]", text)
	}
	return int(first), int(last), nil
}

// checkNames refuses names that cannot be the nodes of one process.
func checkNames(names []string) error {
	switch {
	case len(names) == 0:
		return errors.New("no node names")
	case len(names) > maxFleet:
		return fmt.Errorf("%d node names: one process has at most %d nodes", len(names), maxFleet)
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return fmt.Errorf("node name %q: %s", name, problems[0])
		}
		if seen[name] {
			return fmt.Errorf("node name %q comes twice", name)
		}
		seen[name] = true
	}
	return nil
}
