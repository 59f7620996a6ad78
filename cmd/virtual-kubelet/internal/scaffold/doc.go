// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes new providers: a Go module, or a plugin in Python, that keeps the contract with a service in memory
// from the first minute on, and names what its author has to fill in.
//
// The guarantee: a provider is written whole or not at all. What is written is tested as it is: vk-skeleton/ is a program of this module that
// keeps the contract here too, and the tests generate, build and run both languages.
//
// What surprises: templates have no placeholders. They are of a provider called skeleton, and its name is replaced wherever it
// is a part of a word.
package scaffold
