// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"slices"
	"strings"
)

// shortest is the least length of a secret that is hidden in errors: shorter texts occur in every error.
const shortest = 4

// hiding is an error without the secrets that a service quoted. It has the kinds of the original error.
type hiding struct {
	error
	text string
}

// Error is the text without the secrets.
func (h *hiding) Error() string { return h.text }

// Unwrap makes the kinds of the error visible to errors.As.
func (h *hiding) Unwrap() error { return h.error }

// hide removes secrets from an error, the longest first.
func hide(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, s := range secrets {
		if len(s) >= shortest {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	if text == err.Error() {
		return err
	}
	return &hiding{err, text}
}
