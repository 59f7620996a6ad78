// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"strings"
)

const (
	// Limit is the maximum length of a text, in bytes.
	Limit = 1024
	// readable is the maximum length of a text that is searched, in bytes.
	readable = 64 << 10
)

// Text returns the text without the values and without credentials, truncated to Limit.
func Text(text string, values ...*Values) string { return Cut(Whole(text, values...)) }

// Whole is Text without Limit, for texts with another limit.
func Whole(text string, values ...*Values) string {
	cut := len(text) > readable
	if cut {
		text = text[:readable]
	}
	text, longest := removeValues(text, values)
	if cut { // the end may be the beginning of a value
		if text = text[:max(0, len(text)-longest)]; text == "" {
			text = mark
		}
	}
	return redactPatterns(text)
}

// Cut truncates a text to Limit, at a character boundary.
func Cut(text string) string { return CutTo(text, Limit) }

// CutTo is Cut with another limit, of at least three bytes.
func CutTo(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

// Error returns an error of the same kind as err, with the Text of err.
func Error(err error, values ...*Values) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	text := Text(said, values...)
	if text == said {
		return err
	}
	return &redacted{text: text, err: err}
}

type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }

type valuesKey struct{}

// With returns a context for calls about an object with known values. values is called when a text is redacted.
func With(ctx context.Context, values func() []*Values) context.Context {
	return context.WithValue(ctx, valuesKey{}, values)
}

// From returns the values of the context.
func From(ctx context.Context) []*Values {
	if values, ok := ctx.Value(valuesKey{}).(func() []*Values); ok {
		return values()
	}
	return nil
}
