// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Problems collects the errors of a configuration, so that a provider reports all of them at once.
type Problems struct {
	// Provider is the name of the provider, and the prefix of each problem.
	Provider string

	all []error
}

// Add adds a problem. Its text begins with the name of the field.
func (p *Problems) Add(format string, args ...any) {
	p.all = append(p.all, fmt.Errorf(p.Provider+" provider: "+format, args...))
}

// ClusterName checks the name of the home cluster, which variable can also set.
func (p *Problems) ClusterName(name, variable string) {
	if len(validation.IsDNS1123Label(name)) > 0 {
		p.Add("clusterName: %q: want a name for the home cluster, such as home-1: set it in the file of --provider-config or in %s", name, variable)
	}
}

// Each checks each value of a list. want is the wanted value.
func (p *Problems) Each(field string, values []string, is func(string) bool, want string) {
	for i, value := range values {
		if !is(value) {
			p.Add("%s[%d]: %q: want %s", field, i, value, want)
		}
	}
}

// HTTPS checks a URL of a service that receives secrets.
func (p *Problems) HTTPS(field, text string) {
	if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Host == "" {
		p.Add("%s: %q: want an URL that begins with https://", field, text)
	}
}

// Wait checks a duration, and sets its default.
func (p *Problems) Wait(field string, d *metav1.Duration, or time.Duration) {
	if d.Duration < 0 {
		p.Add("%s: is %s, want 0 for the default, or more", field, d.Duration)
	}
	d.Duration = cmp.Or(d.Duration, or)
}

// Err returns all problems in alphabetical order, or nil.
func (p *Problems) Err() error {
	return errors.Join(slices.SortedFunc(slices.Values(p.all), func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })...)
}
