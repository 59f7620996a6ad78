// SPDX-License-Identifier: Apache-2.0

package errdefs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// kinds lists both kinds, so that each test runs for both.
var kinds = []struct {
	name  string
	new   func(string) error
	newf  func(string, ...any) error
	as    func(error) error
	is    func(error) bool
	other func(error) bool
	own   func(bool) error // a provider's own error
}{
	{"NotFound", errdefs.NotFound, errdefs.NotFoundf, errdefs.AsNotFound, errdefs.IsNotFound, errdefs.IsInvalidInput,
		func(yes bool) error { return absent(yes) }},
	{"InvalidInput", errdefs.InvalidInput, errdefs.InvalidInputf, errdefs.AsInvalidInput, errdefs.IsInvalidInput, errdefs.IsNotFound,
		func(yes bool) error { return refused(yes) }},
}

// absent and refused are error types that a provider may define without importing errdefs.
type absent bool

func (absent) Error() string    { return "absent" }
func (a absent) NotFound() bool { return bool(a) }

type refused bool

func (refused) Error() string        { return "refused" }
func (r refused) InvalidInput() bool { return bool(r) }

// caused wraps an error in the older way: with Cause, without Unwrap.
type caused struct{ cause error }

func (c caused) Error() string { return "caused by " + c.cause.Error() }
func (c caused) Cause() error  { return c.cause }

func TestKindSurvivesWrapping(t *testing.T) {
	for _, k := range kinds {
		plain := errors.New("plain")
		tests := []struct {
			name string
			err  error
			want bool
		}{
			{"nil", nil, false},
			{"plain", plain, false},
			{"new", k.new("m"), true},
			{"newf", k.newf("m %d", 1), true},
			{"as", k.as(plain), true},
			{"percent w", fmt.Errorf("get pod: %w", k.new("m")), true},
			{"percent w twice", fmt.Errorf("sync: %w", fmt.Errorf("get pod: %w", k.new("m"))), true},
			{"two percent w", fmt.Errorf("%w and %w", plain, k.new("m")), true},
			{"percent v", fmt.Errorf("get pod: %v", k.new("m")), false},
			{"Cause", caused{k.new("m")}, true},
			{"Cause below percent w", fmt.Errorf("a: %w", caused{fmt.Errorf("b: %w", k.new("m"))}), true},
			{"join", errors.Join(plain, k.new("m")), true},
			{"join of others", errors.Join(plain, plain), false},
			{"join below percent w", fmt.Errorf("all: %w", errors.Join(plain, k.as(plain))), true},
			{"newf wraps", k.newf("pod: %w", plain), true},
			{"provider's own", k.own(true), true},
			{"provider's own says no", k.own(false), false},
			{"provider's own, wrapped", fmt.Errorf("x: %w", k.own(true)), true},
		}
		for _, tt := range tests {
			t.Run(k.name+"/"+tt.name, func(t *testing.T) {
				if got := k.is(tt.err); got != tt.want {
					t.Errorf("Is%s(%v) = %v, want %v", k.name, tt.err, got, tt.want)
				}
				if k.other(tt.err) {
					t.Errorf("%v is also of the other kind", tt.err)
				}
			})
		}
	}
}

// saysNo has the method of the kind, returns false, and wraps an error for which the method returns true.
type saysNo struct{ error }

func (saysNo) NotFound() bool     { return false }
func (saysNo) InvalidInput() bool { return false }
func (s saysNo) Unwrap() error    { return s.error }

func TestFalseAnswerStopsTheSearch(t *testing.T) {
	for _, k := range kinds {
		err := fmt.Errorf("outer: %w", saysNo{k.new("inner")})
		if k.is(err) {
			t.Errorf("Is%s(%v) = true although the outer error with the method answers false", k.name, err)
		}
		if joined := errors.Join(err, k.new("another")); !k.is(joined) {
			t.Errorf("Is%s(%v) = false although one of the joined errors is of the kind", k.name, joined)
		}
	}
}

func TestAsKeepsMessageAndCause(t *testing.T) {
	for _, k := range kinds {
		plain := errors.New("disk full")
		err := k.as(plain)
		if err.Error() != plain.Error() {
			t.Errorf("As%s changed the message to %q", k.name, err)
		}
		c, ok := err.(interface{ Cause() error })
		if !ok || c.Cause() != plain {
			t.Errorf("As%s(%v) does not give it back by Cause", k.name, plain)
		}
		if !errors.Is(err, plain) {
			t.Errorf("errors.Is does not find what As%s wrapped", k.name)
		}
		if got := k.as(nil); got != nil {
			t.Errorf("As%s(nil) = %v, want nil", k.name, got)
		}
	}
}

func TestMessages(t *testing.T) {
	for _, k := range kinds {
		if got := k.new("100 %d").Error(); got != "100 %d" {
			t.Errorf("%s changed the message to %q", k.name, got)
		}
		inner := errors.New("gone")
		err := k.newf("pod %s: %w", "p", inner)
		if err.Error() != "pod p: gone" || !errors.Is(err, inner) {
			t.Errorf("%sf = %q, errors.Is finds the inner error: %v", k.name, err, errors.Is(err, inner))
		}
	}
}

func TestBothKindsAtOnce(t *testing.T) {
	err := errdefs.AsInvalidInput(errdefs.NotFound("no such class"))
	if !errdefs.IsInvalidInput(err) || !errdefs.IsNotFound(err) {
		t.Errorf("IsInvalidInput = %v, IsNotFound = %v, want both", errdefs.IsInvalidInput(err), errdefs.IsNotFound(err))
	}
}
