// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problems are the reasons why a configuration cannot be: a provider tells all of them at once.
type Problems struct {
	// Provider is the name of the provider, and begins each problem.
	Provider string

	all []error
}

// Add adds a problem. Its text begins with the name of the field.
func (p *Problems) Add(format string, args ...any) {
	p.all = append(p.all, fmt.Errorf(p.Provider+" provider: "+format, args...))
}

// Err returns all reasons in the order of their texts; nil without one.
func (p *Problems) Err() error {
	return errors.Join(slices.SortedFunc(slices.Values(p.all), func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })...)
}
