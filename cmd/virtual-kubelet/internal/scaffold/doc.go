// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes new providers: a Go module, or a plugin in Python, that passes the contract with a
// service in memory from the first minute on, and marks the places for its author to fill in.
//
// The guarantee: a provider is written completely or not at all. The written code is tested as it is:
// vk-skeleton/ is a program of this module that passes the contract here too, and the tests generate, build and
// run both languages.
//
// The surprise: templates have no placeholders. They are the files of a provider called skeleton, and its name
// is replaced wherever it is a part of a word.
package scaffold
